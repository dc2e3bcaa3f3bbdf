"""The shells that a pod's /bin/sh may be."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest


@pytest.fixture(params=["dash", "bash", "busybox"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Sequence[str]:
    """How to start a shell as a pod would: bash keeps to POSIX when its name is sh."""
    program = shutil.which(request.param)
    assert program, f"{request.param} is missing: it is one of the packages these tests stand on"
    if request.param != "bash":
        return [program, "sh"] if request.param == "busybox" else [program]
    link = tmp_path / "sh"
    link.symlink_to(program)
    return [str(link)]
