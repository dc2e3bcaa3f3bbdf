"""The shells that a pod's /bin/sh may be, and how many examples a property gets."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples every time, on machines of any speed: a failure can be repeated, and a slow one is none.
settings.register_profile("repeatable", database=None, derandomize=True, deadline=None, max_examples=200)
settings.load_profile("repeatable")


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
