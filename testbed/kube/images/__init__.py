"""
The test images: built from Debian's packages, cached by the content of their recipes, loaded without a registry.

A pod asks for `mpirt-test/NAME:dev`, and with imagePullPolicy IfNotPresent finds what was loaded.
"""

from __future__ import annotations

from testbed.kube.images.archive import Archive
from testbed.kube.images.build import ensure, pause
from testbed.kube.images.loading import load
from testbed.kube.images.store import Listed, listing

__all__ = ["Archive", "Listed", "ensure", "listing", "load", "pause"]
