"""A switchboard that is killed: its commands go on, and every byte arrives once."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading

import pytest

from tests.apiserver.door import Slam
from tests.apiserver.pods import pod
from tests.apiserver.server import Gated
from tests.apiserver.shell import Cut, End, Shell
from tests.protocol.switchboard.agents import STDOUT_CHANNEL, Agent, Command
from tests.protocol.switchboard.yard import Life, Yard
from tests.support import sizes

SESSIONS = sizes.of(merge=12, full=32)
ERRORS = b"".join(b"%d\n" % number for number in range(1, 40001))
SCRIPT = "seq 40000 >&2 & cat; wait; exit {code}"


def crowd(yard: Yard, count: int) -> list[tuple[Life, bytes]]:
    """Commands with everything flowing, and their stdin."""
    inputs = [os.urandom(400_000) for _ in range(count)]
    return [(yard.live(SCRIPT.format(code=number), data), data) for number, data in enumerate(inputs)]


def has_come(found: list[tuple[Life, bytes]], *, percent: int) -> None:
    """Wait until so much of all output is here."""
    lives = [life for life, _ in found]
    wanted = sum(len(data) + len(ERRORS) for _, data in found) * percent // 100

    def holds(_: Command) -> bool:
        return sum(len(life.command.output) + len(life.command.errors) for life in lives) >= wanted

    lives[0].until(holds)


@pytest.mark.parametrize(
    ("count", "percents", "is_cut_off"),
    [
        pytest.param(SESSIONS, [20], False, id="once"),
        pytest.param(8, [10, 12, 12], False, id="again and again"),
        pytest.param(8, [20], True, id="while the API server is away"),
    ],
)
def test_a_kill_under_load_costs_no_byte_and_no_code(
    yard: Yard, count: int, percents: list[int], *, is_cut_off: bool
) -> None:
    yard.begin()
    found = crowd(yard, count)
    for percent in percents:
        has_come(found, percent=percent)
        if is_cut_off:
            yard.board.kill()
            yard.server.at_the_door(*[Slam(reset=True)] * 24)
        yard.begin()

    for number, (life, data) in enumerate(found):
        command = life.end()
        assert (command.code, command.said) == (number, [])
        assert command.output == data
        assert command.errors == ERRORS


class TestAtEveryStage:
    def test_before_the_command_is_started_it_runs_once(self, yard: Yard) -> None:
        yard.begin()
        gate = threading.Event()
        yard.server.on("exec", Gated(gate))
        witness = yard.folder / "witness"
        life = yard.live(f"echo ran >> {witness}; exit 5")
        yard.server.wait_for("exec")
        yard.begin()
        gate.set()

        assert life.end().code == 5
        assert witness.read_text() == "ran\n"

    def test_while_its_pod_is_waited_for_it_runs_once_when_that_is_ready(self, yard: Yard) -> None:
        yard.server.world.put(pod("w-0", phase="Pending", node=""))
        yard.begin()
        life = yard.live("echo ran; exit 5", MPIRT_WAIT="60")
        yard.server.wait_for("watch")
        yard.begin()
        yard.server.wait_for("watch", 2)
        assert yard.server.asked("exec") == []
        yard.server.world.put(pod("w-0"))

        command = life.end()
        assert (command.code, bytes(command.output)) == (5, b"ran\n")

    def test_between_the_record_and_the_start_it_runs_once(self, yard: Yard) -> None:
        yard.begin()
        yard.server.on("exec", Shell(cut=Cut(b" KEEPER ", End.HANG, STDOUT_CHANNEL, after=True)))
        witness = yard.folder / "witness"
        life = yard.live(f"echo ran >> {witness}; exit 5")
        life.until(lambda command: command.kept)
        assert not witness.exists()
        yard.begin()

        assert life.end().code == 5
        assert witness.read_text() == "ran\n"

    def test_while_it_runs_its_signals_and_its_stdin_go_on(self, yard: Yard) -> None:
        yard.begin()
        agent = yard.agent(
            "trap 'echo told' USR1; echo begun; read a; echo $a; until read a; do :; done; echo $a; exit 3",
            has_stdin=True,
        )
        agent.until(lambda command: command.output == b"begun\n" and command.room > 0)
        agent.send_stdin(b"one\n")
        agent.until(lambda command: command.output == b"begun\none\n")
        yard.board.kill()
        agent.drain()
        yard.begin()
        agent = yard.hand_over(agent.command)
        agent.until(lambda command: command.room > 0)
        agent.signal(signal.SIGUSR1)
        agent.send_stdin(b"two\n")

        command = agent.end()
        assert command.code == 3
        assert sorted(command.output.split()) == [b"begun", b"one", b"told", b"two"]

    def test_while_it_is_detached_it_is_found_again(self, yard: Yard) -> None:
        yard.begin()
        go, gate = yard.folder / "go", threading.Event()
        life = yard.live(f"echo begun; until [ -e {go} ]; do sleep 0.05; done; seq 1000; exit 4")
        life.until(lambda command: bool(command.output))
        yard.server.on("exec", Gated(gate))
        yard.server.wait_for_session().end(End.RESET)
        yard.server.wait_for("exec", 2)
        yard.begin()
        go.touch()
        gate.set()

        command = life.end()
        assert (command.code, command.said) == (4, [])
        assert command.output == b"begun\n" + b"".join(b"%d\n" % number for number in range(1, 1001))

    def test_at_the_end_its_code_and_output_are_kept(self, yard: Yard) -> None:
        agent = left_at_its_end(yard)
        assert agent.command.code is None
        execs = len(yard.server.asked("exec"))
        yard.begin()

        command = yard.hand_over(agent.command).end()
        assert (command.code, bytes(command.output), command.said) == (7, b"out\n", [])
        assert len(yard.server.asked("exec")) == execs

    def test_with_a_kubeconfig_that_is_broken_since_it_ends_with_a_line(self, yard: Yard) -> None:
        yard.begin()
        agent = yard.agent("echo begun; sleep 600")
        agent.until(lambda command: bool(command.output))
        yard.board.kill()
        agent.drain()
        (yard.folder / "kubeconfig").write_text("{")
        yard.begin()

        command = yard.hand_over(agent.command).end()
        assert command.code == 250
        assert "kubeconfig" in command.said[0]

    def test_with_a_kubeconfig_that_is_broken_since_an_end_that_is_known_is_told(self, yard: Yard) -> None:
        agent = left_at_its_end(yard)
        (yard.folder / "kubeconfig").write_text("{")
        yard.begin()

        command = yard.hand_over(agent.command).end()
        assert (command.code, command.said) == (7, [])


def left_at_its_end(yard: Yard) -> Agent:
    """An agent that has kept with which code its command has ended, and whose switchboard was killed then."""
    yard.begin()
    agent = yard.agent("echo out; exit 7")
    agent.writes = False
    agent.until(lambda command: b'"code": 7' in command.kept)
    yard.board.kill()
    agent.drain()
    return agent


def kill_board(yard: Yard) -> int:
    """Kill the switchboard that agents have started; its pid."""
    pid = yard.board_of_agents()
    ended = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    select.select([ended], [], [], 60)
    os.close(ended)
    return pid


class Fed(threading.Thread):
    """Carries the streams of an agent's process."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes) -> None:
        super().__init__(daemon=True)
        self._process, self._stdin = process, stdin
        self.output = self.errors = b""
        self.start()

    def run(self) -> None:
        self.output, self.errors = self._process.communicate(self._stdin, timeout=60)

    def end(self) -> tuple[int, bytes, bytes]:
        self.join(60)
        return self._process.returncode, self.output, self.errors


@pytest.mark.sample(1)
@pytest.mark.parametrize("times", [1, 2])
def test_real_agents_start_the_next_one_and_lose_nothing(yard: Yard, times: int) -> None:
    inputs = [os.urandom(1_500_000) for _ in range(SESSIONS)]
    go = yard.folder / "go"
    wait = f"until [ -e {go} ]; do sleep 0.05; done; "
    fed = []
    for number, data in enumerate(inputs):
        script = f"head -c 100000; touch {yard.folder}/half-{number}; {wait}" + SCRIPT.format(code=number)
        fed.append(Fed(yard.real("w-0", script, stdin=subprocess.PIPE), data))
    for number in range(SESSIONS):
        yard.appears(f"half-{number}")

    pids = {kill_board(yard)}
    go.touch()
    for _ in range(1, times):
        pids.add(kill_board(yard))

    for number, (one, data) in enumerate(zip(fed, inputs, strict=True)):
        code, output, errors = one.end()
        assert (code, errors == ERRORS, output == data) == (number, True, True), errors[-300:]
    assert len(pids) == times
