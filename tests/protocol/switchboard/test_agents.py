"""An agent that is killed: its command, and all that this has started, ends."""

from __future__ import annotations

import signal
import subprocess
import threading
import uuid
from pathlib import Path

import pytest

from tests.apiserver.server import Gated
from tests.apiserver.shell import End
from tests.protocol.switchboard.agents import PATIENCE
from tests.protocol.switchboard.yard import Yard

# TERM, and KILL 3 s later.
SECONDS = 5.0


def running(marker: str) -> list[str]:
    """The processes that have it among their words."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in words:
                found.append(words.decode(errors="replace"))
    return found


def wait_for(marker: str, *, there: bool, seconds: float = PATIENCE) -> None:
    waiting = threading.Event()
    for _ in range(int(seconds * 50)):
        if bool(running(marker)) == there:
            return
        waiting.wait(0.02)
    raise AssertionError(running(marker))


def begun(yard: Yard) -> tuple[subprocess.Popen[bytes], str]:
    """An agent whose command runs, with a child that is deaf to TERM, and a word that its processes have."""
    marker = f"marker-{uuid.uuid4().hex}"
    script = f"echo begun; (trap '' TERM; sh -c 'trap \"\" TERM; sleep 600; : {marker}'); : {marker}"
    process = yard.begun(script)
    wait_for(f": {marker}", there=True)
    return process, marker


def test_the_command_of_an_agent_that_was_killed_ends_with_all_its_processes(yard: Yard) -> None:
    yard.begin()
    process, marker = begun(yard)
    process.kill()

    wait_for(marker, there=False, seconds=SECONDS)


def test_a_command_that_was_told_to_end_saves_its_work_though_its_agent_ends(yard: Yard) -> None:
    yard.begin()
    saves = "touch told; until [ -e go ]; do sleep 0.05; done; touch saved; exit 0"
    script = f"cd {yard.folder}; trap '{saves}' TERM; echo begun; while :; do sleep 0.05; done"
    process = yard.begun(script, env={"MPIRT_GRACE": "30"})
    process.terminate()
    yard.appears("told")

    process.kill()
    process.wait()
    # Whoever asks later is answered when the switchboard knows of the agent's end.
    assert yard.agent("--", on="--version").end().output.startswith(b"mpirt-rsh ")
    (yard.folder / "go").touch()

    yard.appears("saved")


# Ends when its launcher has ended, after it has cleaned up.
DAEMON = """#!/bin/sh
cd "$(dirname "$0")"
echo begun
while kill -0 "$1"; do sleep 0.05; done 2>/dev/null
touch noticed
until [ -e go ]; do sleep 0.05; done
echo ended
"""


def test_a_daemon_that_cleans_up_when_its_launcher_has_ended_is_not_killed(yard: Yard) -> None:
    yard.begin()
    daemon = yard.folder / "prted"
    daemon.write_text(DAEMON)
    daemon.chmod(0o755)
    # As PRRTE has it: more than one command, so that a shell waits for the daemon, and reports how it ends.
    launcher = ["sh", "-c", '"$@" "PREFIX=/usr;export PREFIX;$0" "$$" & read -r line', str(daemon)]
    process = yard.begun(before=launcher, stdin=subprocess.PIPE)
    process.kill()
    process.wait()
    yard.appears("noticed")
    (yard.folder / "go").touch()

    assert process.communicate() == (b"ended\n", b"")


def test_a_command_that_is_detached_ends_when_it_is_found_again(yard: Yard) -> None:
    yard.begin()
    process, marker = begun(yard)
    gate = threading.Event()
    yard.server.on("exec", Gated(gate))
    yard.server.wait_for_session().end(End.RESET)
    yard.server.wait_for("exec", 2)
    process.kill()
    gate.set()

    wait_for(marker, there=False, seconds=SECONDS)


@pytest.mark.parametrize("is_killed", [True, False], ids=["its agent is killed", "it gets a signal"])
def test_a_command_that_waits_for_its_turn_is_never_started_if(yard: Yard, *, is_killed: bool) -> None:
    yard.begin()
    gate = threading.Event()
    yard.server.always("exec", Gated(gate))
    lives = [yard.live("exit 3") for _ in range(32)]
    yard.server.wait_for("exec", 32)
    witness = yard.folder / "witness"
    agent = yard.agent(f"echo ran >> {witness}")
    last = yard.live("exit 4")
    if is_killed:
        agent.close()
    else:
        agent.signal(signal.SIGTERM)
        assert agent.end().code == 143
    gate.set()

    assert [life.end().code for life in lives] == [3] * 32
    assert last.end().code == 4
    assert not witness.exists()


def test_a_signal_before_its_turn_counts_for_the_next_switchboard_too(yard: Yard) -> None:
    yard.begin()
    command = yard.command("exit 3")
    command.signals.append(signal.SIGTERM)
    command.generation = 1

    assert yard.hand_over(command).end().code == 143
