"""START: what the command gets, and what becomes of a START that can't be done."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from testbed.kube.wait import until
from tests.unit.keeper.client import (
    DEADLINE,
    Agent,
    Frame,
    Kind,
    Link,
    Start,
    folders,
    new_nonce,
    socket_of,
    stat_fields,
)
from tests.unit.keeper.container import Container


def test_a_start_may_come_in_parts_over_two_connections(agent: Agent) -> None:
    text = bytes(Start(["/bin/sh", "-c", 'echo ${#big} "$@"', "sh", "x" * 40_000, "y"], {"big": "z" * 100_000}))
    pieces = [text[at : at + 30_000] for at in range(0, len(text), 30_000)]
    agent.attach()

    agent.send(*(agent.control(b"s" + piece) for piece in pieces[:2]))
    agent.until_true(lambda: agent.controls_done == 2)
    agent.link.cut()
    agent.attach(again=True)
    agent.send(*(agent.control(b"s" + piece) for piece in pieces[2:-1]), agent.control(b"S" + pieces[-1]))
    agent.until_exit()

    assert agent.out == b"100000 " + b"x" * 40_000 + b" y\n"


def test_started_has_the_pid_of_the_command_which_has_a_session_of_its_own(agent: Agent) -> None:
    started = agent.start("/bin/sh", "-c", "cat /proc/$$/stat")
    agent.until_exit()
    pid, _, _, parent, group, session = agent.out.split()[:6]

    assert int(pid) == int(group) == int(session) == started.number
    assert int(parent) != started.number
    assert started.payload == b"\1"


def test_folder_and_mask_of_new_files_are_those_of_the_exec(keeper: Path, tmp_path: Path) -> None:
    shell = ("/bin/sh", "-c", f'cd {tmp_path}; umask 0123; exec "$0" "$@"')
    with Agent(keeper, prefix=shell) as agent:
        agent.start("/bin/sh", "-c", "pwd; umask")
        agent.until_exit()

        assert agent.out.decode().split() == [str(tmp_path), "0123"]
        assert Path(f"/proc/{agent.keeper_pid}/cwd").readlink() == Path("/")


def test_variables_are_set_beside_those_of_the_exec_and_instead_of_them(keeper: Path) -> None:
    with Agent(keeper, environment={"KEPT": "1", "SET": "old", "SETTER": "2"}) as agent:
        agent.start("/usr/bin/env", environment={"SET": "new=", "EMPTY": ""})
        agent.until_exit()

    assert sorted(agent.out.splitlines()) == [b"EMPTY=", b"KEPT=1", b"SET=new=", b"SETTER=2"]


@pytest.mark.parametrize(
    ("variables", "threads"),
    [
        ({"MPIRT_THREADS": "4"}, b"4"),
        ({"MPIRT_THREADS": "4", "OMP_NUM_THREADS": "2"}, b"2"),
        ({"MPIRT_THREADS": "4", "OMP_NUM_THREADS": ""}, b""),
        ({}, b"unset"),
    ],
)
def test_openmp_starts_as_many_threads_as_a_rank_has_cpus_unless_its_variable_is_set(
    keeper: Path, variables: dict[str, str], threads: bytes
) -> None:
    with Agent(keeper, environment=variables) as agent:
        agent.start("/bin/sh", "-c", "echo ${OMP_NUM_THREADS-unset}")
        agent.until_exit()

    assert agent.out == threads + b"\n"


def test_signals_have_their_defaults_and_none_is_blocked(keeper: Path) -> None:
    script = "import signal\nfor s in (1, 13, 15, 17): signal.signal(s, signal.SIG_IGN)\n"
    script += "signal.pthread_sigmask(0, {1, 10, 15})\nimport os, sys; os.execv(sys.argv[1], sys.argv[1:])"
    with Agent(keeper, prefix=(sys.executable, "-c", script)) as agent:
        agent.start("/bin/grep", "Sig[BI]", "/proc/self/status")
        agent.until_exit()

    assert agent.out.split() == [b"SigBlk:", b"0" * 16, b"SigIgn:", b"0" * 16]


def test_limits_are_those_of_the_exec_apart_from_the_tag(agent: Agent) -> None:
    agent.start("/bin/cat", "/proc/self/limits")
    agent.until_exit()
    ours = Path("/proc/self/limits").read_text().splitlines()
    differing = [line for line in agent.out.decode().splitlines() if line not in ours]

    assert [line.split()[:3] for line in differing] == [["Max", "file", "locks"]]
    assert differing[0].split()[4:] == ["unlimited", "locks"]


def test_the_command_inherits_its_three_streams_and_nothing_else(keeper: Path) -> None:
    with Agent(keeper, prefix=("/bin/sh", "-c", 'exec 5</dev/zero 9</; exec "$0" "$@"')) as agent:
        agent.start("/bin/ls", "/proc/self/fd", has_stdin=True)
        agent.until_exit()

    assert agent.out.split() == [b"0", b"1", b"2", b"3"]


def test_the_keeper_holds_none_of_the_execs_own_pipes(agent: Agent) -> None:
    agent.start("/bin/sleep", "1000")
    # It looks once into /proc, as soon as the command runs.
    agent.send(agent.frame(Kind.BEAT))
    agent.until(Kind.BEAT_BACK)
    bridge, keeper = Path(f"/proc/{agent.link.process.pid}/fd"), Path(f"/proc/{agent.keeper_pid}/fd")
    links = {number.name: str(number.readlink()) for number in keeper.iterdir()}

    assert [links[name] for name in "012"] == ["/dev/null"] * 3
    assert {str((bridge / name).readlink()) for name in "01"}.isdisjoint(links.values())


@pytest.mark.parametrize(
    ("path", "number"),
    [
        pytest.param("/nowhere/at/all", errno.ENOENT, id="no such program"),
        pytest.param("/etc", errno.EACCES, id="a folder"),
        pytest.param("/etc/passwd", errno.EACCES, id="no program"),
    ],
)
def test_a_program_that_cannot_be_executed_is_reported_with_its_errno(
    agent: Agent, path: str, number: int
) -> None:
    failed = agent.start(path)

    assert (failed.kind, failed.number) == (Kind.FAILED, number)
    assert failed.payload == f"cannot execute {path}".encode()
    agent.done()
    assert folders(agent.nonce) == []


GOOD = bytes(Start(["/bin/true"], {"A": "1"}))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(GOOD[:28], id="half a head"),
        pytest.param(GOOD[:-1], id="no zero at the end"),
        pytest.param(GOOD + b"x\0", id="a string too many"),
        pytest.param(GOOD[:25] + struct.pack("<HH", 0, 2) + GOOD[29:], id="no word"),
        pytest.param(GOOD[:25] + struct.pack("<HH", 9, 1) + GOOD[29:], id="a word too few"),
        pytest.param(GOOD[:25] + struct.pack("<HH", 2, 0) + GOOD[29:-5], id="strings that end early"),
        pytest.param(
            bytes(Start(["/bin/true", "x"]))[:25] + struct.pack("<HH", 1, 1) + b"\0/bin/true\0x\0", id="no ="
        ),
        pytest.param(GOOD[:8] + b"\2" + GOOD[9:], id="a stdin of 2"),
        pytest.param(bytes(Start(["/bin/true"], job="j" * 512)), id="a job too long"),
    ],
)
def test_a_malformed_start_fails(agent: Agent, text: bytes) -> None:
    agent.attach()
    agent.send(agent.control(b"S" + text))

    failed = agent.until(Kind.FAILED)

    assert (failed.number, failed.payload) == (errno.EINVAL, b"malformed START")
    agent.done()


def test_a_start_longer_than_two_mebibytes_breaks_the_rules(agent: Agent) -> None:
    agent.attach()
    agent.send(*(agent.control(b"s" + bytes(32_767)) for _ in range(64)))
    agent.until_true(lambda: agent.controls_done == 64)

    agent.send(agent.control(b"s" + bytes(65)))

    agent.until_broken()


def test_a_failed_start_is_reported_to_each_connection_until_it_is_acknowledged(agent: Agent) -> None:
    agent.start("/nowhere")
    for _ in range(2):
        agent.link.cut()
        agent.attach(again=True)
        assert agent.until(Kind.FAILED).payload == b"cannot execute /nowhere"

    agent.done()

    assert folders(agent.nonce) == []


def test_a_failed_start_that_was_never_received_is_reported_to_the_next_connection(agent: Agent) -> None:
    lost = socket.socket(socket.AF_UNIX)
    lost.connect(socket_of(agent.nonce))
    os.kill(agent.keeper_pid, signal.SIGSTOP)
    start = Frame(Kind.CONTROL, 1, 1, b"S" + bytes(Start(["/nowhere"])))
    lost.sendall(bytes(Frame(Kind.ATTACH, 1, 0, bytes(16))) + bytes(start))
    lost.close()
    os.kill(agent.keeper_pid, signal.SIGCONT)

    agent.epoch = 1
    agent.attach(again=True)
    failed = agent.until(Kind.FAILED)

    assert failed.number == errno.ENOENT


def test_done_removes_the_folder_ends_the_keeper_and_leaves_no_zombie(keeper: Path) -> None:
    with Agent(keeper) as agent:
        [folder] = folders(agent.nonce)
        agent.start("/bin/sh", "-c", "cat >/dev/null", has_stdin=True)
        pid = agent.keeper_pid
        assert folder.stat().st_mode & 0o7777 == 0o700
        agent.send(agent.frame(Kind.STDIN_END, 0))
        agent.until_exit()
        agent.done()

    # The bridge has reaped it: a zombie still would have its place in /proc.
    assert not folder.exists()
    assert not Path(f"/proc/{pid}").exists()
    assert agent.link.process.returncode == 0


def test_orphans_of_the_command_are_reaped(agent: Agent) -> None:
    agent.start("/bin/sh", "-c", "(sh -c 'echo $$' &); read -r x", has_stdin=True)
    agent.until_true(lambda: agent.out.endswith(b"\n"))
    orphan = Path("/proc", agent.out.decode().strip())

    while orphan.exists():
        agent.send(agent.frame(Kind.BEAT))
        agent.until(Kind.BEAT_BACK)

    assert Path(f"/proc/{agent.keeper_pid}").exists()


def test_a_keeper_with_no_start_ends_when_it_is_asked_to(keeper: Path) -> None:
    nonce = new_nonce()
    with subprocess.Popen([keeper, "bridge", nonce], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as bridge:
        assert bridge.stdout is not None
        bridge.stdout.readline()
        (child,) = Path(f"/proc/{bridge.pid}/task/{bridge.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGTERM)

        assert bridge.wait(20) == 0
    assert folders(nonce) == []


def test_nothing_outlives_a_keeper_that_was_stopped_before_it_was_killed(agent: Agent) -> None:
    agent.start("/bin/sh", "-c", "setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $!; exec sleep 1000")
    agent.until_true(lambda: agent.out.endswith(b"\n"))
    daemon = os.pidfd_open(int(agent.out))

    os.kill(agent.keeper_pid, signal.SIGSTOP)
    until_state(agent.keeper_pid, "T")
    os.kill(agent.keeper_pid, signal.SIGCONT)
    until_state(agent.keeper_pid, "S")
    os.kill(agent.keeper_pid, signal.SIGKILL)
    agent.until_broken()

    with open(daemon, closefd=True) as handle:  # noqa: PTH123 - a descriptor has no path
        assert select.select([handle], [], [], 20)[0], "the daemon lives"


def until_state(pid: int, state: str) -> None:
    """Wait until /proc shows that of it."""
    until(lambda: stat_fields(pid)[0] == state, within=DEADLINE, what=f"state {state}")


def test_a_bridge_whose_socket_has_no_reader_any_more_lets_go_of_it_and_waits_for_its_keeper(keeper: Path) -> None:
    ours, theirs = socket.socketpair()
    words = [str(keeper), "bridge", new_nonce()]
    with ours, subprocess.Popen(words, stdin=subprocess.PIPE, stdout=theirs.fileno()) as bridge:
        theirs.close()
        assert ours.recv(100)
        (child,) = Path(f"/proc/{bridge.pid}/task/{bridge.pid}/children").read_text().split()

        ours.close()
        null = Path("/dev/null")
        until(lambda: Path(f"/proc/{bridge.pid}/fd/1").readlink() == null, within=DEADLINE, what="its end")
        assert bridge.poll() is None
        os.kill(int(child), signal.SIGTERM)

        assert bridge.wait(20) == 0


@pytest.mark.usefixtures("root")
class TestBelowAFirstProcessThatReapsNoChildren:
    """As a container's `sleep infinity` does: whatever has no parent stays there as a zombie when it ends."""

    def test_a_command_whose_connection_is_lost_leaves_no_zombie(self, container: Container, keeper: Path) -> None:
        session = container.session(keeper)
        session.start("/bin/true")
        session.link.close()
        with closing(Link(container.enter(keeper, "attach", session.nonce))) as link:
            link.greeting()
            link.send(Frame(Kind.ATTACH, 2, 0, bytes(16)))
            while link.receive().kind is not Kind.EXIT:
                pass
            link.send(Frame(Kind.DONE, 2, 0))
            link.process.wait(DEADLINE)
        until(lambda: not Path(f"/proc/{session.keeper}").exists(), within=DEADLINE, what="no trace of the keeper")

        assert zombies_below(container.first) == []

    def test_an_attempt_that_is_given_up_leaves_no_zombie(self, container: Container, keeper: Path) -> None:
        session = container.session(keeper)
        session.link.close()
        os.kill(session.keeper, signal.SIGTERM)
        until(lambda: not Path(f"/proc/{session.keeper}").exists(), within=DEADLINE, what="no trace of the keeper")

        assert zombies_below(container.first) == []

    def test_a_command_whose_usage_could_not_be_read_in_time_leaves_no_zombie(
        self, container: Container, impatient: Path
    ) -> None:
        session = container.session(impatient)
        session.start("/bin/sleep", "1000")
        session.link.say(Frame(Kind.USAGE, 1, 1))
        while session.link.receive().kind is not Kind.USAGE_BACK:
            pass

        os.kill(session.keeper, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{session.keeper}").exists(), within=DEADLINE, what="no trace of the keeper")
        session.link.process.wait(DEADLINE)

        assert zombies_below(container.first) == []


def zombies_below(pid: int) -> list[str]:
    """The children of a process that have ended and that it has not reaped."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [child for child in children if stat_fields(int(child))[0] == "Z"]
