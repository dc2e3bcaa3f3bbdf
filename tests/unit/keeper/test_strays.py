"""Shells that wait for words which will not come: a keeper in the same container ends them, and nobody else."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from images import build
from mpirt.rsh.protocol.greeting import BOOTSTRAP
from tests.kube.wait import until
from tests.unit.keeper.client import DEADLINE, Frame, Kind, Link, Start, new_nonce

pytestmark = pytest.mark.usefixtures("root")

Shell = subprocess.Popen[bytes]
Words = tuple[str, ...]


@pytest.fixture(scope="session")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A keeper that takes no shell for too young."""
    return build.build("keeper", tmp_path_factory.mktemp("hasty"), "amd64", "-DSTRAY_AGE=0")


class Container:
    """Processes of their own, which others enter as an exec does."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        main = self._run("unshare", "--mount", "--pid", "--fork", "--mount-proc", "/bin/sh", "-c", "echo; read x")
        assert main.stdout is not None
        main.stdout.readline()
        (self._first,) = Path(f"/proc/{main.pid}/task/{main.pid}/children").read_text().split()

    def _run(self, *words: str | Path) -> Shell:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self._stack.enter_context(process)
        # From the last to the first: the end of the first one is the end of all.
        self._stack.callback(process.kill)
        return process

    def enter(self, *words: str | Path) -> list[str | Path]:
        """The words that run these inside."""
        return ["nsenter", "--mount", "--pid", f"--target={self._first}", *words]

    def shell(self, words: Words = BOOTSTRAP) -> Shell:
        """An exec that waits for its first words. It is there once it is what it is to be."""
        shell = self._run(*self.enter(*words))
        children = Path(f"/proc/{shell.pid}/task/{shell.pid}/children")
        awaited = "\0".join(words).encode() + b"\0"
        until(
            lambda: any(_words(pid) == awaited for pid in children.read_text().split()),
            within=DEADLINE, what="the shell",
        )  # fmt: skip
        return shell

    def run(self, keeper: Path) -> None:
        """A command that a keeper holds, until the keeper has ended."""
        link = Link(self.enter(keeper, "bridge", new_nonce()))
        link.greeting()
        start = b"S" + bytes(Start(["/bin/true"]))
        link.send(Frame(Kind.ATTACH, 1, 0, bytes(16)), Frame(Kind.CONTROL, 1, 1, start))
        while link.receive().kind is not Kind.EXIT:
            pass
        link.send(Frame(Kind.DONE, 1, 0))
        link.process.wait(DEADLINE)
        link.close()


@pytest.fixture
def container() -> Iterator[Container]:
    """One with nothing in it but its first process."""
    with ExitStack() as stack:
        yield Container(stack)


def test_a_shell_that_was_left_is_ended(container: Container, hasty: Path) -> None:
    left = [container.shell(), container.shell()]

    container.run(hasty)

    for shell in left:
        shell.wait(DEADLINE)


def test_one_that_may_still_be_spoken_to_is_not(container: Container, keeper: Path) -> None:
    young = container.shell()

    container.run(keeper)

    assert answers(young)


def test_one_that_was_spoken_to_is_not(container: Container, hasty: Path) -> None:
    busy = container.shell()
    assert busy.stdin is not None
    assert busy.stdout is not None
    busy.stdin.write(b"sleep 1000 & echo up; read line; echo $line; kill $!\n")
    assert busy.stdout.readline() == b"up\n"

    container.run(hasty)

    busy.stdin.write(b"there\n")
    assert busy.stdout.readline() == b"there\n"


@pytest.mark.parametrize(
    "words",
    [
        pytest.param((*BOOTSTRAP, "more"), id="with another word"),
        pytest.param((*BOOTSTRAP[:2], 'IFS= read -r MPIRT && eval "$MPIRT"'), id="of another name"),
        pytest.param((*BOOTSTRAP[:2], 'read -r mpirt; eval "$mpirt"'), id="other words"),
    ],
)
def test_another_shell_is_not(container: Container, hasty: Path, words: Words) -> None:
    other = container.shell(words)

    container.run(hasty)

    assert answers(other)


def test_one_that_something_in_the_container_has_started_is_not(container: Container, hasty: Path) -> None:
    script = f"'{BOOTSTRAP[0]}' -c '{BOOTSTRAP[2]}'; :"
    parent = container.shell(("/bin/sh", "-c", script))

    container.run(hasty)

    assert answers(parent)


def answers(shell: Shell) -> bool:
    """Whether it does what it is told."""
    assert shell.stdin is not None
    assert shell.stdout is not None
    shell.stdin.write(b"echo here\n")
    return shell.stdout.readline() == b"here\n"


def _words(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
