"""
Agent and keeper, which are built into mpirt before an image takes mpirt as it is in the checkout.

Owns: asking for it. make knows whether those in mpirt are of the sources as they are now.
"""

from __future__ import annotations

from testbed.kube.errors import ClusterError
from testbed.kube.paths import PROJECT
from testbed.kube.shell import run

_REMEDY = "see what it says: make programs"


def ensure() -> None:
    """Build what is missing or out of date. Not to be called twice at once."""
    try:
        # The environment that this process runs in is left as it is.
        run("make", f"--directory={PROJECT}", "--assume-old=.venv/.ready", "programs")
    except ClusterError as error:
        raise ClusterError(error.what, remedy=_REMEDY) from error
