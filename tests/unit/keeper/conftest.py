"""The keeper, compiled once for all tests, and one session of it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from images import build
from tests.unit.keeper.client import Agent
from tests.unit.keeper.container import OWN_PLACES, Container

PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file for this machine, as it goes into a job."""
    folder = tmp_path_factory.mktemp("keeper")
    subprocess.run([sys.executable, PROJECT / "images/build.py", "keeper", folder, "amd64"], check=True)
    return folder / "keeper-1-amd64"


@pytest.fixture
def everybodys(root: None) -> Iterator[Path]:
    """A folder that any user may enter."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o755)
        yield path


@pytest.fixture
def agent(keeper: Path) -> Iterator[Agent]:
    """A session whose command isn't started yet."""
    with Agent(keeper) as agent:
        yield agent


@pytest.fixture(scope="session")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A keeper that takes no shell for too young."""
    return build.build("keeper", tmp_path_factory.mktemp("hasty"), "amd64", "-DSTRAY_AGE=0")


@pytest.fixture(scope="session")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A keeper that gives the process no time that reads what its command uses."""
    return build.build("keeper", tmp_path_factory.mktemp("impatient"), "amd64", "-DHELPER_PATIENCE=0")


@pytest.fixture
def container() -> Iterator[Container]:
    """One with nothing in it but its first process."""
    with ExitStack() as stack:
        yield Container(stack)


@pytest.fixture
def apart(root: None) -> Iterator[Sequence[str]]:
    """Runs what follows where the only place is the test's own."""
    script = f"{OWN_PLACES} && echo ready && exec sleep 1000"
    with subprocess.Popen(["unshare", "--mount", "/bin/sh", "-c", script], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        yield ["nsenter", f"--mount=/proc/{holder.pid}/ns/mnt"]
        holder.kill()
