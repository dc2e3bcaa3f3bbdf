"""
The programs of the cluster: where they come from, how they are built, and where each of them is.

`binaries` is what others use. A folder of testbed/kube/modules is one Go module with a list of programs.
"""

from testbed.kube.programs.binaries import Binaries, are_cached, ensure

__all__ = ["Binaries", "are_cached", "ensure"]
