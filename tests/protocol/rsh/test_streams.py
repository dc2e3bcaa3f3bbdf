"""Bytes come through as they are, in bounded memory, however they are given and taken."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.apiserver.channel import STDOUT, Channel
from tests.apiserver.peer import Peer
from tests.apiserver.shell import Cut, End, Shell
from tests.protocol.rsh.agent import PATIENCE, Agent, Ground, closing
from tests.protocol.rsh.peers import Keeper, out

MIB = 1 << 20
MOST_MEMORY = 40 * 1024


def peak(agent: Agent) -> int:
    """The most memory that a running agent has had, in KiB."""
    status = Path(f"/proc/{agent.process.pid}/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0])


def cpu(agent: Agent) -> float:
    """The CPU time of a running agent, in seconds."""
    fields = Path(f"/proc/{agent.process.pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until(condition: object) -> None:
    """Wait for something that tells nobody when it happens."""
    assert callable(condition)
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never came to be"
        threading.Event().wait(0.01)


def is_asleep(agent: Agent) -> bool:
    """Whether it has waited, and not run, for a while."""
    before = cpu(agent)
    threading.Event().wait(0.3)
    return cpu(agent) == before


def says_much_and_resets(pod: Channel) -> None:
    for number in range(32):
        pod.stdout(out(bytes(16 * 1024), at=number * 16 * 1024))
    pod.connection.reset()


class TestOutput:
    def test_and_errors_stay_apart(self, ground: Ground) -> None:
        ended = ground.run("w-0", "printf out; printf err >&2; exit 3")

        assert (ended.code, ended.output, ended.errors) == (3, b"out", "err")

    def test_output_of_every_byte_comes_as_it_is(self, ground: Ground, tmp_path: Path) -> None:
        noise = bytes(range(256)) * 2048 + os.urandom(4 * MIB)
        (tmp_path / "noise").write_bytes(noise)

        ended = ground.run("w-0", f"cat {tmp_path}/noise")

        assert ended.code == 0
        assert ended.output == noise

    def test_output_that_nobody_reads_holds_the_pod_up_and_grows_nowhere(
        self, ground: Ground, tmp_path: Path
    ) -> None:
        noise = os.urandom(MIB) * 32
        (tmp_path / "noise").write_bytes(noise)
        agent = ground.start("w-0", f"cat {tmp_path}/noise")
        first = agent.process.stdout
        assert first is not None
        begin = first.read(1)

        wait_until(lambda: is_asleep(agent))
        waiting, unread = peak(agent), ground.server.wait_for_session().processes()
        ended = agent.wait()

        assert unread != []
        assert waiting < MOST_MEMORY
        assert ended.code == 0
        assert begin + ended.output == noise

    def test_output_goes_to_a_file(self, ground: Ground, tmp_path: Path) -> None:
        with (tmp_path / "out").open("wb") as file:
            ended = ground.start("w-0", "seq 100000", stdout=file).wait()

        assert ended.code == 0
        assert (tmp_path / "out").read_text().splitlines() == [str(number) for number in range(1, 100001)]

    def test_output_that_looks_like_an_answer_of_a_keeper_is_shown_all_the_same(self, ground: Ground) -> None:
        ended = ground.run("w-0", r"printf 'a\001mpirt-'; printf '\001mpirt-0123 GONE 0\n' >&2; exit 4")

        assert (ended.code, ended.output, ended.errors) == (4, b"a\x01mpirt-", "\x01mpirt-0123 GONE 0\n")

    @pytest.mark.parametrize("command", ["yes", "echo short; exit 0"])
    def test_output_on_a_full_disk_is_no_success_and_named(self, ground: Ground, command: str) -> None:
        with Path("/dev/full").open("wb") as full:
            ended = ground.start("w-0", command, stdout=full).wait()

        assert ended.code == 251
        assert command != "yes" or ended.line.startswith(
            "the output of pod w-0 can't be written: No space left on device"
        )

    def test_output_that_nobody_wants_any_more_ends_the_command(self, ground: Ground) -> None:
        agent = ground.start("w-0", "yes")
        running = ground.server.wait_for_session()
        assert agent.process.stdout is not None
        agent.process.stdout.read(1)
        agent.process.stdout.close()
        agent.process.stdout = None

        ended = agent.wait()

        assert running.finished.wait(PATIENCE)
        assert (ended.code, ended.lines, running.processes()) == (141, [], [])

    @pytest.mark.parametrize(
        ("closed", "end", "expected"),
        [(">&-", 3, (3, b"", "err\n")), ("2>&-", 3, (3, b"out\n", "")), ("2>/dev/full", 0, (251, b"out\n", ""))],
        ids=["stdout is closed", "stderr is closed", "stderr can't be written"],
    )
    def test_output_is_dropped_where_it_has_no_place(
        self, ground: Ground, closed: str, end: int, expected: tuple[int, bytes, str]
    ) -> None:
        ended = ground.start("w-0", f"echo err >&2; echo out; exit {end}", before=closing(closed)).wait()

        assert (ended.code, ended.output, ended.errors) == expected

    def test_output_of_stderr_that_nobody_reads_any_more_is_dropped(self, ground: Ground) -> None:
        agent = ground.start("w-0", "read -r line; seq 1000 >&2; echo out; exit 3", stdin=subprocess.PIPE)
        assert agent.process.stderr is not None
        agent.process.stderr.close()
        agent.process.stderr = open(os.devnull, "rb")  # noqa: PTH123, SIM115  what communicate() reads instead

        ended = agent.wait(b"go\n")

        assert (ended.code, ended.output) == (3, b"out\n")

    def test_output_that_nobody_reads_costs_nothing_though_the_peer_is_lost(self, ground: Ground) -> None:
        ground.server.on("exec", Peer(Keeper(then=says_much_and_resets)))
        agent = ground.start("w-0", "x")
        assert agent.process.stdout is not None
        begin = agent.process.stdout.read(1)

        wait_until(lambda: is_asleep(agent))

        ended = agent.wait()
        assert (ended.code, begin + ended.output[:9]) == (251, bytes(10))
        assert "the keeper of the command in pod w-0 is gone" in ended.line

    def test_a_line_of_ours_begins_a_line(self, ground: Ground) -> None:
        ground.server.on("exec", Shell(cut=Cut(b"half", End.EOF, STDOUT, after=True)))

        ended = ground.run("w-0", "printf half >&2; sleep 60", env={"MPIRT_LEASE": "0"})

        assert ended.errors.startswith("half\nmpirt-rsh: ")
        assert "pod w-0" in ended.line
