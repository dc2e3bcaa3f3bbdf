"""Who comes in, who doesn't, and when the switchboard leaves."""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

import mpirt
from mpirt import agent as agents_files
from testbed.kube.wait import until
from tests.protocol.switchboard.agents import HANDOVER, PATIENCE, SIGNAL, STDIN, WRITTEN, Agent, Board
from tests.protocol.switchboard.yard import ARCHITECTURE, Yard


class TestDescriptors:
    def test_commands_beyond_their_number_are_run_by_their_agents(self, yard: Yard) -> None:
        yard.begin(descriptors=64)
        lives = [yard.live("exit 3") for _ in range(60)]
        found = [life.end() for life in lives]

        direct = [command.direct for command in found if command.direct is not None]
        assert {command.code for command in found} == {3, None}
        assert len(direct) == sum(command.code is None for command in found)
        assert set(direct) == {
            "the switchboard has no descriptors for more commands: its limit (ulimit -n) is too low"
        }

    def test_who_can_not_be_let_in_yet_costs_nothing_and_is_let_in_later(self, yard: Yard) -> None:
        board = yard.begin(descriptors=64)
        waiting = [Agent(board.folder, yard.command("exit 5")) for _ in range(80)]
        yard.agents += waiting
        # Ten that may run, and eight to be turned away.
        for agent in waiting[:18]:
            assert agent.frame()[0] != 0
        before = cpu(board)
        threading.Event().wait(1.0)
        assert cpu(board) - before < 0.3

        for agent in waiting[:79]:
            agent.close()
        assert waiting[79].hand_over().end().code == 5


def waiting(yard: Yard) -> Agent:
    """An agent whose command waits for a line."""
    agent = yard.agent("read a; exit 4", has_stdin=True)
    agent.until(lambda command: command.room > 0)
    return agent


def released(agent: Agent) -> int | None:
    """Give it the line, and wait for its code."""
    agent.send_stdin(b"line\n")
    return agent.end().code


def cpu(board: Board) -> float:
    """For how many seconds it has run."""
    fields = Path(f"/proc/{board.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def framed(kind: int, payload: bytes = b"") -> bytes:
    return struct.pack("<I12x", len(payload) << 8 | kind) + payload


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="another protocol"),
        pytest.param(struct.pack("<I12x", 9 * 1024 * 1024 << 8 | HANDOVER), id="HANDOVER of 9 MiB"),
        pytest.param(framed(HANDOVER, b"short"), id="HANDOVER cut off"),
        pytest.param(framed(SIGNAL, b"\x0f"), id="SIGNAL before HANDOVER"),
        pytest.param(framed(WRITTEN, bytes(24)), id="WRITTEN before HANDOVER"),
        pytest.param(framed(4, b"out"), id="a frame of the switchboard's"),
        pytest.param(framed(99), id="unknown"),
    ],
)
def test_who_breaks_the_rules_at_the_beginning_is_hung_up_on(yard: Yard, said: bytes) -> None:
    yard.begin()
    other = waiting(yard)
    agent = Agent(yard.place, yard.command("true"))
    assert agent.frame()[0] == 1
    agent.say_bytes(said)

    assert agent.frame()[0] == 0
    agent.close()
    assert released(other) == 4


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(lambda command: framed(HANDOVER, command.handover()), id="HANDOVER again"),
        pytest.param(lambda command: framed(STDIN, bytes(command.room // 20)) * 21, id="stdin beyond ROOM"),
        pytest.param(lambda _: framed(WRITTEN, struct.pack("<QQQ", 9, 0, 0)), id="more written than sent"),
        pytest.param(lambda _: framed(WRITTEN, b"few"), id="WRITTEN cut off"),
        pytest.param(lambda _: framed(SIGNAL), id="SIGNAL without a number"),
        pytest.param(lambda _: struct.pack("<I12x", 65537 << 8 | STDIN), id="a frame that is too large"),
    ],
)
def test_who_breaks_the_rules_later_loses_the_command(yard: Yard, said: object) -> None:
    yard.begin()
    agent = yard.agent("trap 'touch ended; exit' TERM; echo begun; while :; do sleep 0.05; done", has_stdin=True)
    agent.until(lambda command: bool(command.output) and command.room > 0)
    assert callable(said)
    agent.say_bytes(said(agent.command))
    while agent.hear():
        pass

    yard.server.wait_for_session().finished.wait(PATIENCE)
    assert yard.server.wait_for_session().processes() == []
    assert yard.agent("exit 3").end().code == 3


def test_half_a_frame_holds_up_nobody(yard: Yard) -> None:
    yard.begin()
    agent = Agent(yard.place, yard.command("true"))
    yard.agents.append(agent)
    agent.say_bytes(b"\x10")

    assert yard.agent("exit 3").end().code == 3


def test_another_user_is_hung_up_on(yard: Yard) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: it becomes another user")
    yard.begin()
    yard.place.chmod(0o711)
    (yard.place / "socket").chmod(0o777)
    code = (
        "import os, socket, sys; os.chdir(sys.argv[1]); os.seteuid(65534); s = socket.socket(socket.AF_UNIX); "
        "s.connect('socket'); s.settimeout(30); print(s.recv(100))"
    )
    found = subprocess.run([sys.executable, "-c", code, yard.place], capture_output=True, check=True)

    assert found.stdout == b"b''\n"
    assert yard.agent("exit 3").end().code == 3


@pytest.mark.parametrize(
    "unshare",
    [("--mount", "--pid", "--fork", "--mount-proc"), ("--mount",)],
    ids=["own processes", "shared processes"],
)
def test_another_container_of_the_same_user_is_hung_up_on(yard: Yard, unshare: Sequence[str]) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: it makes namespaces")
    yard.begin()
    command = yard.command("touch was-here")
    code = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.settimeout(30)\n"
        "try:\n s.sendall(bytes.fromhex(sys.argv[2])); print(s.recv(100))\n"
        "except (BrokenPipeError, ConnectionResetError): print(b'')"
    )
    words = ["unshare", *unshare, sys.executable, "-c", code, str(yard.place / "socket")]
    found = subprocess.run([*words, framed(HANDOVER, command.handover()).hex()], capture_output=True, check=True)

    assert found.stdout == b"b''\n"
    assert yard.agent("exit 3").end().code == 3
    assert not (yard.folder / "was-here").exists()


def test_a_pipe_in_place_of_the_lock_does_not_keep_it_from_leaving(yard: Yard) -> None:
    board = yard.begin(idle_seconds=0.1)
    (yard.place / "lock").unlink(missing_ok=True)
    os.mkfifo(yard.place / "lock")
    assert yard.agent("exit 3").end().code == 3

    assert board.process.wait(PATIENCE) == 0


class TestTheEnd:
    def test_comes_some_time_after_the_last_agent(self, yard: Yard) -> None:
        board = yard.begin(idle_seconds=0.5)
        assert yard.agent("exit 3").end().code == 3

        assert board.process.wait(PATIENCE) == 0
        assert not (yard.place / "socket").exists()

    def test_does_not_come_while_an_agent_is_there(self, yard: Yard) -> None:
        board = yard.begin(idle_seconds=0.1)
        agent = waiting(yard)
        threading.Event().wait(0.5)
        assert board.process.poll() is None

        assert released(agent) == 4
        assert board.process.wait(PATIENCE) == 0

    def test_is_not_put_off_by_agents_that_were_gone_before_they_came_in(self, yard: Yard) -> None:
        board = yard.begin(idle_seconds=0.5)
        os.kill(board.process.pid, signal.SIGSTOP)
        for _ in range(10):
            Agent(board.folder, yard.command("true")).close()
        os.kill(board.process.pid, signal.SIGCONT)

        assert board.process.wait(PATIENCE) == 0

    def test_leaves_the_socket_of_another_one_alone(self, yard: Yard) -> None:
        board = yard.begin(idle_seconds=0.5)
        assert yard.agent("exit 3").end().code == 3
        (yard.place / "socket").unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(yard.place / "socket"))

            assert board.process.wait(PATIENCE) == 0
            assert (yard.place / "socket").exists()

    def test_waits_for_who_has_come_in_and_not_spoken_and_costs_nothing_meanwhile(self, yard: Yard) -> None:
        """An agent that was stopped by Ctrl-Z, for example."""
        board = yard.begin(idle_seconds=0.1)
        silent = Agent(board.folder, yard.command("exit 3"))
        yard.agents.append(silent)
        until(lambda: not (yard.place / "socket").exists(), within=PATIENCE, what="a closed door")
        before = cpu(board)
        threading.Event().wait(1.0)
        assert cpu(board) - before < 0.3

        assert silent.hand_over().end().code == 3
        assert board.process.wait(PATIENCE) == 0

    def test_comes_without_its_folder_too(self, yard: Yard) -> None:
        board = yard.begin(idle_seconds=0.5)
        agent = waiting(yard)
        yard.place.rename(yard.folder / "elsewhere")

        assert released(agent) == 4
        assert board.process.wait(PATIENCE) == 0


def hasty_package(folder: Path) -> str:
    """A package whose switchboards leave at once."""
    source = Path(mpirt.__file__).parent
    target = folder / "mpirt"
    for part in (".", "cli", "rsh"):
        (target / part).mkdir(parents=True)
        for entry in (source / part).iterdir():
            if entry.name not in ("cli", "rsh", "switchboard.py", "__pycache__"):
                (target / part / entry.name).symlink_to(entry)
    (target / "cli/real.py").symlink_to(source / "cli/switchboard.py")
    (target / "cli/switchboard.py").write_text(
        "from mpirt.cli.real import main as real\ndef main():\n    return real(idle_seconds=0.03)\n"
    )
    return str(folder)


def test_an_agent_that_comes_in_the_moment_of_leaving_is_served(yard: Yard) -> None:
    root = hasty_package(yard.folder / "root")
    program = agents_files.path(ARCHITECTURE)
    assert program is not None
    yard.place.mkdir(mode=0o700)
    environ = yard.environ(MPIRT_SWITCHBOARD=str(yard.place))
    ended: list[tuple[int, bytes]] = []

    def come_and_go(seed: int) -> None:
        pauses = random.Random(seed)
        for _ in range(12):
            words = [program, "--python", sys.executable, root, "mpirt-rsh", "w-0", "exit 3"]
            found = subprocess.run(words, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=False)
            ended.append((found.returncode, found.stderr))
            threading.Event().wait(pauses.uniform(0.0, 0.09))

    threads = [threading.Thread(target=come_and_go, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ended == [(3, b"")] * 36
