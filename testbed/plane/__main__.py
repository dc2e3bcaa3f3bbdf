"""
What an API server of the newest version says at a path: `python -m testbed.plane /openapi/v3/api/v1`.

It knows Kubernetes' own types alone, and ends with this process.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from testbed.kube import programs
from testbed.kube.programs import modules
from testbed.plane import plane


def answer(path: str) -> str:
    """Start an API server, and return what it says there."""
    binaries = programs.ensure(modules.newest())
    with tempfile.TemporaryDirectory(prefix="mpirt-plane-") as folder, plane.bare(Path(folder), binaries) as made:
        return made.kubectl("get", "--raw", path).stdout


if __name__ == "__main__":
    sys.stdout.write(answer(*sys.argv[1:]))
