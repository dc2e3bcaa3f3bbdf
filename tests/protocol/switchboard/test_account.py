"""What a switchboard notes of its commands for whoever judges the launcher's exit code."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpirt import account
from mpirt.account import Account, Lost
from tests.apiserver.pods import pod
from tests.kube.wait import until
from tests.protocol.switchboard.yard import Yard

RUNS = "echo begun; while :; do sleep 0.1; done"
BEGUN = b"begun\n"


@pytest.fixture
def file(yard: Yard) -> Iterator[Path]:
    """The launcher's termination message."""
    path = yard.folder / "termination-log"
    path.touch()
    yard.begin()
    yield path


def told(file: Path) -> Account:
    return account.read(file.read_text())


def begun(yard: Yard, file: Path, script: str = RUNS, *, grace: int = 1) -> subprocess.Popen[bytes]:
    """A launcher that starts one agent, whose command runs; it ends when its stdin does, and leaves the agent."""
    launcher = ["sh", "-c", '"$@" & read -r line', "sh"]
    env = {"MPIRT_ACCOUNT": str(file), "MPIRT_GRACE": str(grace)}
    process = yard.real("w-0", script, env=env, before=launcher, stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == BEGUN
    return process


def wait_for(file: Path, wanted: Account) -> None:
    until(lambda: told(file) == wanted, within=30.0, what=f"{wanted} in the account", instead=file.read_text)


def replaced(yard: Yard) -> None:
    """The pod is another one now, with nothing of the one before."""
    yard.server.world.put(pod("w-0", uid="another", container_id="containerd://another"))
    yard.server.wait_for_session().kill()


def test_a_command_that_was_lost_is_told_until_the_launcher_begins_anew(yard: Yard, file: Path) -> None:
    begun(yard, file)
    yard.server.wait_for("watch")

    replaced(yard)
    wait_for(file, Account((Lost("w-0", 246),)))
    assert "mpirt-rsh: pod w-0 was deleted" in file.read_text()

    begun(yard, file)
    assert told(file).lost == ()


def test_a_loss_of_which_mpirun_of_open_mpi_5_may_not_have_told_stays_one(yard: Yard, file: Path) -> None:
    daemon = yard.folder / "prted"
    daemon.write_text(f"#!/bin/sh\n{RUNS}\n")
    daemon.chmod(0o755)
    launcher = begun(yard, file, str(daemon))
    yard.server.wait_for("watch")

    # As it does then: it ends, and nobody asks for its agents' codes.
    launcher.kill()
    launcher.wait()
    replaced(yard)
    wait_for(file, Account((Lost("w-0", 246),)))

    begun(yard, file)
    assert told(file).lost == (Lost("w-0", 246),)


def test_a_proxy_of_mpich_is_told_from_its_start_to_its_end_since_mpiexec_may_end_first(
    yard: Yard, file: Path
) -> None:
    proxy, over = yard.folder / "hydra_pmi_proxy", yard.folder / "over"
    proxy.write_text(f"#!/bin/sh\necho begun; while [ ! -e {over} ]; do sleep 0.1; done\n")
    proxy.chmod(0o755)

    begun(yard, file, f'"{proxy}"')
    wait_for(file, Account(silent=("w-0",)))

    over.touch()
    wait_for(file, Account())
    assert file.read_text() == ""


def test_a_command_is_told_from_the_kill_of_its_agent_to_its_end_since_mpirun_does_that_before_it_ends(
    yard: Yard, file: Path
) -> None:
    over = yard.folder / "over"
    stays = f"trap '' TERM HUP; echo begun; while [ ! -e {over} ]; do sleep 0.1; done"
    launcher = begun(yard, file, stays, grace=600)
    (agent,) = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    assert file.read_text() == ""

    os.kill(int(agent), signal.SIGKILL)
    wait_for(file, Account(silent=("w-0",)))

    over.touch()
    wait_for(file, Account())
