"""What `keeper sessions` counts: everything of mpirt-rsh that is alive in its container, and nothing else."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from mpirt.rsh.protocol.entrance import BOOTSTRAP
from testbed.kube.wait import until
from tests.unit.keeper.client import DEADLINE, read_greeting, stat_fields
from tests.unit.keeper.container import Container, Shell, Words, kill

pytestmark = pytest.mark.usefixtures("root")

NOBODY: Words = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
# Another limit of file locks than `unlimited` leaves no room for a tag.
UNTAGGED: Words = ("prlimit", "--locks=1000:1000")


def ask(container: Container, keeper: Path, *prefix: str) -> tuple[int, str]:
    """The exit code, and what is printed."""
    words = container.enter(*prefix, keeper, "sessions")
    result = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert result.stderr == ""
    return result.returncode, result.stdout


def count(container: Container, keeper: Path, *prefix: str) -> int:
    """The number of sessions."""
    code, line = ask(container, keeper, *prefix)
    name, number, _ = line.split()
    assert (code, name) == (0, "mpirt-sessions")
    return int(number)


def began(container: Container) -> int:
    """When its first process started, in clock ticks."""
    return int(stat_fields(container.first)[19])


class TestTheAnswer:
    def test_is_one_line_with_the_number_and_the_start_of_the_container(
        self, container: Container, keeper: Path
    ) -> None:
        assert ask(container, keeper) == (0, f"mpirt-sessions 0 {began(container)}\n")

    def test_tells_the_same_start_as_the_first_line_of_a_bridge(self, container: Container, keeper: Path) -> None:
        session = container.session(keeper)

        start = read_greeting(session.greeting, session.nonce)[1]

        assert ask(container, keeper) == (0, f"mpirt-sessions 1 {start}\n")

    def test_has_no_start_where_pid_1_is_in_another_container(self, container: Container, keeper: Path) -> None:
        assert ask(container.beside(), keeper) == (0, "mpirt-sessions 0 0\n")

    @pytest.mark.parametrize(
        "prefix",
        [
            pytest.param(("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc; exec "$@"', "-"), id="no proc"),
            pytest.param(("unshare", "--pid", "--fork"), id="proc of another pid namespace"),
            pytest.param(
                ("unshare", "-m", "sh", "-c", 'mount -t proc -o hidepid=2 none /proc; exec "$@"', "-"),
                id="proc that hides processes",
            ),
            pytest.param(UNTAGGED, id="no room for a tag"),
        ],
    )
    def test_is_unknown_where_sessions_could_be_overlooked(
        self, container: Container, keeper: Path, prefix: Words
    ) -> None:
        assert ask(container, keeper, *prefix) == (1, "mpirt-sessions unknown\n")


class TestASession:
    def test_counts_before_its_command_starts(self, container: Container, keeper: Path) -> None:
        container.session(keeper)

        assert count(container, keeper) == 1

    def test_counts_once_with_another_connection(self, container: Container, keeper: Path) -> None:
        session = container.session(keeper)
        session.start("/bin/sleep", "1000")
        container.attach(keeper, session)

        assert count(container, keeper) == 1

    def test_counts_beside_another_one(self, container: Container, keeper: Path) -> None:
        for _ in range(2):
            container.session(keeper).start("/bin/sleep", "1000")

        assert count(container, keeper) == 2

    def test_counts_while_its_keeper_has_no_bridge(self, container: Container, keeper: Path) -> None:
        session = container.session(keeper)
        session.start("/bin/sleep", "1000")
        kill(session.bridge)

        assert count(container, keeper) == 1

    def test_counts_while_the_end_of_its_command_is_not_acknowledged(
        self, container: Container, keeper: Path
    ) -> None:
        session = container.session(keeper)
        session.start("/bin/sh", "-c", "exit 0")
        session.exited()

        assert count(container, keeper) == 1

    def test_does_not_count_once_its_keeper_has_ended(self, container: Container, keeper: Path) -> None:
        session = container.session(keeper)
        session.start("/bin/sleep", "1000")
        session.end(signal.SIGKILL)

        assert count(container, keeper) == 0

    def test_does_not_count_when_its_bridge_has_ended_what_a_killed_keeper_left(
        self, container: Container, keeper: Path
    ) -> None:
        session = container.session(keeper)
        session.start("/bin/sh", "-c", "setsid sleep 1000 & echo up; wait")
        session.line()
        kill(session.keeper)
        session.link.process.wait(DEADLINE)

        assert count(container, keeper) == 0

    def test_does_not_count_as_a_zombie(self, container: Container, keeper: Path) -> None:
        session = container.session(keeper)
        session.abandon()

        assert stat_fields(session.keeper)[0] == "Z"
        assert count(container, keeper) == 0

    def test_of_a_keeper_that_set_no_tag_counts(self, container: Container, keeper: Path) -> None:
        session = container.session(keeper, prefix=UNTAGGED)
        session.start("/bin/sleep", "1000")
        kill(session.bridge)

        assert count(container, keeper) == 1

    def test_of_a_keeper_that_set_no_tag_counts_once_with_a_connection_that_has_one(
        self, container: Container, keeper: Path
    ) -> None:
        session = container.session(keeper, prefix=UNTAGGED)
        session.start("/bin/sleep", "1000")
        container.attach(keeper, session)

        assert count(container, keeper) == 1

    def test_of_another_user_counts(self, container: Container, everybodys: Path, keeper: Path) -> None:
        program = Path(shutil.copy(keeper, everybodys))
        container.session(program).start("/bin/sleep", "1000")
        container.session(program, prefix=NOBODY).start("/bin/sleep", "1000")

        assert count(container, program) == 2
        assert count(container, program, *NOBODY) == 2


# Its first thread ends, another goes on: /proc shows a zombie without words.
HEADLESS = """
import ctypes, os, threading, time
def run():
    while open("/proc/self/stat").read().rpartition(")")[2].split()[0] != "Z": time.sleep(0.01)
    os.write(1, b"%d\\n" % os.getpid()); time.sleep(1000)
threading.Thread(target=run).start()
ctypes.CDLL(None).pthread_exit(None)
"""
SLEEPER: Words = ("/bin/sh", "-c", "echo $$; exec sleep 1000")


class TestWhatACommandLeavesBehind:
    @pytest.mark.parametrize(
        "words",
        [
            pytest.param(SLEEPER, id="a process of its group"),
            pytest.param(("setsid", *SLEEPER), id="one with a session of its own"),
            pytest.param(("env", "-i", *SLEEPER), id="one without variables"),
            pytest.param((*NOBODY, *SLEEPER), id="another user's"),
            pytest.param(("unshare", "--mount", *SLEEPER), id="one in another mount namespace"),
            pytest.param((sys.executable, "-c", HEADLESS), id="one whose first thread has ended"),
        ],
    )
    def test_counts_when_keeper_and_bridge_were_killed(
        self, container: Container, keeper: Path, words: Words
    ) -> None:
        session = container.session(keeper)
        session.start("/bin/sh", "-c", '"$@" & wait', "sh", *words)
        left = session.line()
        session.abandon()

        assert count(container, keeper) == 1
        subprocess.run(container.enter("/bin/sh", "-c", f"kill -9 {left}"), check=True)
        until(lambda: count(container, keeper) == 0, within=DEADLINE, what="its end")

    def test_counts_once_whatever_their_number(self, container: Container, keeper: Path) -> None:
        session = container.session(keeper)
        session.start("/bin/sh", "-c", "sleep 1000 & sleep 1000 & echo up; wait")
        session.line()

        assert count(container, keeper) == 1
        session.abandon()
        assert count(container, keeper) == 1

    def test_counts_when_it_ended_by_itself(self, container: Container, keeper: Path) -> None:
        session = container.session(keeper)
        session.start("/bin/sh", "-c", "setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $!")
        left = session.line()
        session.end()

        assert count(container, keeper) == 1
        subprocess.run(container.enter("/bin/sh", "-c", f"kill -9 {left}"), check=True)
        until(lambda: count(container, keeper) == 0, within=DEADLINE, what="its end")


class TestAShellOfAnExec:
    def test_counts_while_it_waits_for_its_first_words(self, container: Container, keeper: Path) -> None:
        container.shell()
        container.shell()

        assert count(container, keeper) == 2

    def test_does_not_count_when_it_was_left(self, container: Container, hasty: Path) -> None:
        container.shell()

        assert count(container, hasty) == 0

    def test_counts_once_with_a_copy_of_itself(self, container: Container, keeper: Path) -> None:
        shell = container.shell()
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write(b"{ echo up; sleep 1000; :; } & wait\n")
        assert shell.stdout.readline() == b"up\n"

        assert count(container, keeper) == 1

    def test_counts_while_it_executes_another_program(self, container: Container, keeper: Path) -> None:
        shell = container.shell()
        again = f"exec '{BOOTSTRAP[0]}' {BOOTSTRAP[1]} '{BOOTSTRAP[2]}'"
        ask_often = 'i=0; while [ $i -lt 100 ]; do "$0" sessions; i=$((i + 1)); done'
        with fed(shell, again):
            result = subprocess.run(
                container.enter("/bin/sh", "-c", ask_often, keeper), capture_output=True, text=True, check=True
            )

        assert result.stdout == f"mpirt-sessions 1 {began(container)}\n" * 100

    @pytest.mark.parametrize(
        "words",
        [
            pytest.param((*BOOTSTRAP, "more"), id="another word"),
            pytest.param((*BOOTSTRAP[:2], 'IFS= read -r MPIRT && eval "$MPIRT"'), id="another name"),
            pytest.param(("/bin/sh", "-c", "read x", "bridge"), id="a verb without a nonce"),
        ],
    )
    def test_with_other_words_does_not_count(self, container: Container, keeper: Path, words: Words) -> None:
        container.shell(words)

        assert count(container, keeper) == 0


class TestAnotherContainerInThePidNamespace:
    def test_does_not_count(self, container: Container, keeper: Path) -> None:
        one, other = container.beside(), container.beside()
        one.session(keeper).start("/bin/sleep", "1000")
        one.session(keeper, prefix=UNTAGGED).start("/bin/sleep", "1000")
        one.shell()

        assert (count(one, keeper), count(other, keeper)) == (3, 0)

    def test_does_not_count_with_what_it_left_behind(self, container: Container, keeper: Path) -> None:
        one, other = container.beside(), container.beside()
        session = one.session(keeper)
        session.start("/bin/sh", "-c", "sleep 1000 & echo up; wait")
        session.line()
        session.abandon()

        assert (count(one, keeper), count(other, keeper)) == (1, 0)

    def test_does_not_count_where_another_user_asks(
        self, container: Container, everybodys: Path, keeper: Path
    ) -> None:
        program = Path(shutil.copy(keeper, everybodys))
        one, other = container.beside(), container.beside()
        one.session(program).start("/bin/sleep", "1000")

        # Who isn't root can't read /proc/PID/ns of a process of root's.
        assert (count(one, program, *NOBODY), count(other, program, *NOBODY)) == (1, 0)


def test_a_process_that_asks_the_same_meanwhile_does_not_count(container: Container, keeper: Path) -> None:
    read, write = os.pipe2(os.O_NONBLOCK)
    with ExitStack() as stack:
        stack.callback(os.close, read)
        stack.callback(os.close, write)
        fill(write)
        # It can't write its answer, so it stays.
        other = stack.enter_context(subprocess.Popen(container.enter(keeper, "sessions"), stdout=write))
        stack.callback(other.kill)
        children = Path(f"/proc/{other.pid}/task/{other.pid}/children")
        until(lambda: any(is_tagged(pid) for pid in children.read_text().split()), within=DEADLINE, what="its tag")

        assert count(container, keeper) == 0


@contextmanager
def fed(shell: Shell, line: str) -> Iterator[None]:
    """The shell reads this line again and again."""
    assert shell.stdin is not None
    with subprocess.Popen(["yes", line], stdout=shell.stdin) as source:
        try:
            yield
        finally:
            source.kill()


def fill(pipe: int) -> None:
    """Write until there is no more room."""
    try:
        while os.write(pipe, bytes(4096)):
            pass
    except BlockingIOError:
        os.set_blocking(pipe, True)


def is_tagged(pid: str) -> bool:
    """Whether its limit of file locks is a number."""
    limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
    (limit,) = (line.split()[3] for line in limits if line.startswith("Max file locks"))
    return limit != "unlimited"
