"""What a switchboard notes of its commands for whoever judges the launcher's exit code."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from mpirt import account, agent
from mpirt.account import Account, Lost
from testbed.kube.wait import until
from tests.apiserver.pods import pod
from tests.protocol.switchboard.agents import PATIENCE
from tests.protocol.switchboard.yard import ARCHITECTURE, Yard

RUNS = "echo begun; while :; do sleep 0.1; done"
LAUNCHER = ("sh", "-c", '"$@" & read -r line', "sh")


@pytest.fixture
def file(yard: Yard) -> Iterator[Path]:
    """The launcher's termination message."""
    path = yard.folder / "termination-log"
    path.touch()
    yard.begin()
    yield path


def told(file: Path) -> Account:
    return account.read(file.read_text())


def begun(
    yard: Yard, file: Path, script: str = RUNS, *, grace: int = 1, launcher: Sequence[str] = LAUNCHER
) -> subprocess.Popen[bytes]:
    """A launcher that starts one agent, whose command runs; it ends when its stdin does, and leaves the agent."""
    env = {"MPIRT_ACCOUNT": str(file), "MPIRT_GRACE": str(grace)}
    return yard.begun(script, env=env, before=launcher, stdin=subprocess.PIPE)


def begun_by_the_first_process(yard: Yard, file: Path, script: str) -> subprocess.Popen[bytes]:
    """
    The same of a launcher that runs under mpirt-init, and kills its agent at its end.

    As mpirun of Open MPI 5 does if it has lost a daemon: it has ended with 0 then, before anybody knows of it.
    """
    program = agent.path(ARCHITECTURE)
    assert program is not None, "make programs"
    first = str(shutil.copy(program, yard.folder / "mpirt-init"))
    launcher = [first, "sh", "-c", '"$@" & read -r line; kill -KILL $!; exit 0', "sh"]
    return begun(yard, file, script, grace=600, launcher=launcher)


def stays(yard: Yard) -> tuple[str, Path]:
    """A command that ends with a file only, and that file."""
    over = yard.folder / "over"
    return f"trap '' TERM HUP; echo begun; while [ ! -e {over} ]; do sleep 0.1; done", over


def has_an_agent(launcher: subprocess.Popen[bytes]) -> bool:
    """Whether the agent of one that runs under mpirt-init has not ended."""
    with suppress(psutil.NoSuchProcess):
        [shell] = psutil.Process(launcher.pid).children()
        return any(child.status() != psutil.STATUS_ZOMBIE for child in shell.children())
    return False


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
    script, over = stays(yard)
    launcher = begun(yard, file, script, grace=600)
    (agent,) = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    assert file.read_text() == ""

    os.kill(int(agent), signal.SIGKILL)
    wait_for(file, Account(silent=("w-0",)))

    over.touch()
    wait_for(file, Account())


def test_a_launcher_ends_when_it_is_told_how_a_command_has_ended_whose_end_it_did_not_wait_for(
    yard: Yard, file: Path
) -> None:
    script, over = stays(yard)
    launcher = begun_by_the_first_process(yard, file, script)
    assert launcher.stdin is not None
    launcher.stdin.close()
    wait_for(file, Account(silent=("w-0",)))
    assert launcher.poll() is None

    over.touch()

    assert launcher.wait(PATIENCE) == 0
    assert told(file) == Account(is_settled=True)


def test_a_command_whose_end_nobody_can_tell_is_never_settled(yard: Yard, file: Path) -> None:
    launcher = begun_by_the_first_process(yard, file, f"trap '' TERM HUP; {RUNS}")
    yard.server.wait_for("watch")
    assert launcher.stdin is not None
    launcher.stdin.close()
    wait_for(file, Account(silent=("w-0",)))

    replaced(yard)

    assert launcher.wait(PATIENCE) == 0
    assert told(file) == Account(silent=("w-0",))


def test_a_launcher_that_has_waited_for_its_commands_ends_at_once(yard: Yard, file: Path) -> None:
    launcher = begun_by_the_first_process(yard, file, "echo begun")
    until(lambda: not has_an_agent(launcher), within=30.0, what="the agent's end")

    launcher.communicate(timeout=PATIENCE)

    assert launcher.returncode == 0
    assert told(file) == Account(is_settled=True)
