"""How commands end: by signals to the agent or with it, with their last words, and what they leave behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.apiserver.faults import Silence
from tests.apiserver.peer import Peer
from tests.apiserver.shell import End
from tests.protocol.rsh.agent import PATIENCE, Ground, begun
from tests.protocol.rsh.peers import ends_with

LEFT_OPEN = "pod w-0: something that the command left behind still has its output open; what that writes is lost"
HANDLER = """
import os, signal, sys, time

def told(number, frame):
    os.write(1, b"told %s %d\\n" % (os.environb[b"A"], number))
    time.sleep(0.5)
    os.write(1, b"done\\n")
    os._exit(5)

for name in ("TERM", "HUP", "USR1"):
    signal.signal(getattr(signal, "SIG" + name), told)
print("begun", flush=True)
while True:
    time.sleep(60)
"""


@pytest.fixture
def handler(tmp_path: Path) -> str:
    """A compound command, as horovodrun and mpirun make them: a shell waits for the program."""
    (tmp_path / "handler.py").write_text(HANDLER, encoding="utf-8")
    return f"cd {tmp_path}; env A=b {sys.executable} handler.py"


class TestASignal:
    def test_a_signal_that_is_forwarded_reaches_the_program_and_not_the_shell_that_waits(
        self, ground: Ground, handler: str
    ) -> None:
        agent = begun(ground, f"{handler}; echo code $?")

        agent.process.send_signal(signal.SIGUSR1)

        ended = agent.wait()
        assert (ended.code, ended.output, ended.errors) == (0, b"told b 10\ndone\ncode 5\n", "")

    def test_a_signal_that_is_forwarded_leaves_nothing_in_the_pod(self, ground: Ground, handler: str) -> None:
        agent = begun(ground, handler)
        running = ground.server.wait_for_session()

        agent.process.send_signal(signal.SIGUSR1)

        assert agent.wait().code == 5
        assert running.finished.wait(PATIENCE)
        assert running.processes() == []

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
    def test_a_signal_that_ends_the_command_lets_its_program_say_its_last_words(
        self, ground: Ground, handler: str, number: signal.Signals
    ) -> None:
        agent = begun(ground, handler)

        agent.process.send_signal(number)

        ended = agent.wait()
        assert (ended.code, ended.output) == (5, b"told b %d\ndone\n" % number)

    def test_a_signal_that_ends_the_command_lets_what_it_left_say_its_last_words(
        self, ground: Ground, handler: str
    ) -> None:
        agent = begun(ground, f"({handler}) & wait")

        agent.process.terminate()

        ended = agent.wait()
        assert ended.output == b"told b 15\ndone\n"

    @pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM], ids=lambda number: number.name)
    def test_a_signal_drops_no_byte_of_a_success_whose_reader_is_slow(
        self, ground: Ground, number: signal.Signals
    ) -> None:
        told = "head -c 200000 /dev/zero; exit 0"
        name = number.name.removeprefix("SIG")
        agent = begun(ground, f"trap '{told}' {name}; echo begun; while :; do sleep 0.05; done")
        running = ground.server.wait_for_session()

        agent.process.send_signal(number)
        assert running.finished.wait(PATIENCE)
        agent.process.send_signal(signal.SIGUSR1)

        ended = agent.wait()
        # Who wants an end to it gives a reader no more than a second, which is no success.
        is_late = number is signal.SIGTERM and ended.code == 128 + number
        assert is_late or (ended.code, len(ended.output)) == (0, 200_000)

    def test_a_signal_that_ends_the_wait_for_a_reader_is_no_success(self, ground: Ground) -> None:
        agent = begun(ground, "echo begun; head -c 200000 /dev/zero")
        assert ground.server.wait_for_session().finished.wait(PATIENCE)

        agent.process.send_signal(signal.SIGUSR1)
        agent.process.terminate()
        agent.process.wait(PATIENCE)

        ended = agent.wait()
        assert ended.code == 128 + signal.SIGTERM
        assert len(ended.output) < 200_000


class TestOutputAfterTheCommandsOwnEnd:
    def test_output_after_the_end_is_waited_for_while_it_flows(self, ground: Ground) -> None:
        # For longer than silence would be waited for, and with pauses of a small part of that.
        ended = ground.run("w-0", "(for i in 0 1 2 3 4 5 6 7 8 9; do sleep 0.25; echo $i; done) & exit 0")

        assert (ended.code, ended.output, ended.errors) == (0, b"0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", "")

    def test_output_after_the_end_that_passes_a_filter_is_whole(self, ground: Ground, tmp_path: Path) -> None:
        noise = os.urandom(1 << 20)
        (tmp_path / "noise").write_bytes(noise)
        command = f"bash -c 'exec > >(cat; sleep 0.8; echo end); cat {tmp_path}/noise'"

        ended = ground.run("w-0", command)

        assert (ended.code, ended.output == noise + b"end\n", ended.errors) == (0, True, "")

    @pytest.mark.parametrize(
        ("command", "code", "output"),
        [("(sleep 60; echo late) & echo now; exit 0", 0, b"now\n"), ("sleep 60 & exit 7", 7, b"")],
    )
    def test_output_after_the_end_that_does_not_come_is_cut_with_a_line(
        self, ground: Ground, command: str, code: int, output: bytes
    ) -> None:
        ended = ground.run("w-0", command)

        assert (ended.code, ended.output, ended.line) == (code, output, LEFT_OPEN)

    def test_output_after_the_end_ends_with_what_writes_it_when_a_signal_comes(self, ground: Ground) -> None:
        agent = begun(ground, "echo begun; (while :; do echo more; sleep 0.1; done) & exit 0")
        running = ground.server.wait_for_session()
        for _ in range(15):
            agent.line()

        agent.process.terminate()

        assert agent.wait().code == 0
        assert running.finished.wait(PATIENCE)
        assert running.processes() == []


ASKING = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]


# Two of the four.
@pytest.mark.sample(2)
@pytest.mark.parametrize("number", ASKING, ids=lambda number: number.name)
class TestASignalThatAsksForAnEnd:
    def test_a_signal_ends_the_dialling(self, ground: Ground, number: signal.Signals) -> None:
        ground.server.always("exec", Silence())
        agent = ground.start("w-0", "true")
        ground.server.wait_for("exec")

        agent.process.send_signal(number)

        ended = agent.wait()
        assert (ended.code, ended.output, ended.errors) == (128 + number, b"", "")
        assert len(ground.server.asked("exec")) == 1

    def test_a_signal_ends_the_wait_for_a_shell(self, ground: Ground, number: signal.Signals) -> None:
        ground.server.always("exec", Peer(ends_with(End.HANG)))
        agent = ground.start("w-0", "true", env={"MPIRT_LOG": "debug"})
        assert agent.process.stderr is not None
        while b"state: hello" not in agent.process.stderr.readline():
            pass

        agent.process.send_signal(number)

        assert agent.wait().code == 128 + number

    def test_a_signal_ends_the_command(self, ground: Ground, number: signal.Signals) -> None:
        agent = begun(ground, "(sleep 600 &); echo begun; exec sleep 600")
        running = ground.server.wait_for_session()

        agent.process.send_signal(number)

        ended = agent.wait()
        assert running.finished.wait(PATIENCE)
        assert (ended.code, running.processes()) == (128 + number, [])
        assert ended.lines == []


def test_a_second_signal_gives_the_command_no_grace(ground: Ground) -> None:
    # What says it has no handler by then: a child that is only forked has its parent's, and may lose the signal.
    agent = begun(ground, "trap 'echo no' TERM; while :; do sh -c 'echo begun; exec sleep 600'; done")
    running = ground.server.wait_for_session()

    agent.process.terminate()
    said = agent.line()
    agent.process.terminate()

    assert (said, agent.wait().code) == (b"no\n", 128 + 9)
    assert running.finished.wait(PATIENCE)
    assert running.processes() == []


# Two of the four.
@pytest.mark.sample(2)
@pytest.mark.parametrize("number", ASKING, ids=lambda number: number.name)
def test_a_signal_that_was_ignored_at_the_start_stays_ignored(ground: Ground, number: signal.Signals) -> None:
    ignoring = ["sh", "-c", f'trap "" {number.name.removeprefix("SIG")}; exec "$@"', "sh"]
    agent = begun(ground, "echo begun; read -r line; echo $line", stdin=subprocess.PIPE, before=ignoring)

    agent.process.send_signal(number)

    ended = agent.wait(b"still here\n")
    assert (ended.code, ended.output) == (0, b"still here\n")


def test_an_agent_that_is_killed_leaves_no_command_behind(ground: Ground) -> None:
    agent = begun(ground, "echo begun; sleep 600 & sleep 600", env={"MPIRT_LEASE": "1"})
    running = ground.server.wait_for_session()

    agent.process.kill()

    assert running.finished.wait(PATIENCE)
    assert running.processes() == []


def test_a_daemon_does_not_outlive_the_launcher_that_started_it(ground: Ground) -> None:
    orted = ground.folder / "orted"
    orted.write_text("#!/bin/sh\necho begun\nsleep 600\n", encoding="utf-8")
    orted.chmod(0o755)
    launcher = ["sh", "-c", '"$@" & read -r line', "sh"]
    agent = begun(ground, str(orted), stdin=subprocess.PIPE, before=launcher)
    running = ground.server.wait_for_session()

    agent.process.kill()

    assert running.finished.wait(PATIENCE)
    assert running.processes() == []
