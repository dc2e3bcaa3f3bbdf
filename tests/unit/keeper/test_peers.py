"""
Other containers of a pod: the same user, the same /dev/shm, sometimes the same processes. What their programs get
from a keeper, and from who looks for one, is nothing.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from images import build
from tests.unit.keeper.client import DEADLINE, Broken, Frame, Kind, new_nonce, read_greeting
from tests.unit.keeper.container import Container, Session

pytestmark = pytest.mark.usefixtures("root")

ATTACH = bytes(Frame(Kind.ATTACH, 9, 0, bytes(16)))
FENCE = bytes(Frame(Kind.FENCE, 0, 9, b"ns/train"))

# Says something to a socket; prints what comes back, which is nothing if it is refused.
_CALL = """
import socket, sys
with socket.socket(socket.AF_UNIX) as caller:
    caller.connect(sys.argv[1])
    try:
        caller.sendall(bytes.fromhex(sys.argv[2]))
        print(caller.recv(100).hex())
    except (BrokenPipeError, ConnectionResetError):
        print()
"""
# The same, but the process that connects has ended before that. Prints its number first.
_CALL_AND_END = """
import os, socket, sys
caller = socket.socket(socket.AF_UNIX)
if (pid := os.fork()) == 0:
    caller.connect(sys.argv[1])
    os._exit(0)
os.waitpid(pid, 0)
caller.sendall(bytes.fromhex(sys.argv[2]))
print(pid, flush=True)
try:
    print(caller.recv(100).hex())
except ConnectionResetError:
    print()
"""
# A process with that number.
_TAKE_NUMBER = """
import os, sys
while True:
    with open('/proc/sys/kernel/ns_last_pid', 'w') as last:
        last.write(str(int(sys.argv[1]) - 1))
    if (pid := os.fork()) == 0:
        sys.stdin.read()
        os._exit(0)
    if pid == int(sys.argv[1]):
        break
print(flush=True)
sys.stdin.read()
"""
# Listens to sockets that look like those of sessions; prints what is said to them when its stdin ends.
_FAKES = """
import json, os, select, socket, sys
listeners, callers, said = [], [], b''
for folder in json.loads(sys.argv[1]):
    os.makedirs(folder, 0o700, exist_ok=True)
    listeners.append(socket.socket(socket.AF_UNIX))
    listeners[-1].bind(folder + '/socket')
    listeners[-1].listen(16)
print(flush=True)
ready = []
while sys.stdin not in ready:
    ready, _, _ = select.select([sys.stdin, *listeners, *callers], [], [])
    for one in ready:
        if one in listeners:
            callers.append(one.accept()[0])
        elif one in callers:
            said += (more := one.recv(1000))
            if not more:
                callers.remove(one)
print(said.hex())
"""


def call(container: Container, session: Session, said: bytes) -> bytes:
    """What a program in that container gets for saying this to a session."""
    path = f"/dev/shm/mpirt-{session.nonce}/socket"
    words = container.enter(sys.executable, "-c", _CALL, path, said.hex())
    result = subprocess.run(words, capture_output=True, check=True, text=True, timeout=DEADLINE)
    return bytes.fromhex(result.stdout)


def running(stack: ExitStack, words: Sequence[str | Path]) -> subprocess.Popen[str]:
    """A program that runs until the test's end at most."""
    process = stack.enter_context(
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    )
    stack.callback(process.kill)
    return process


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that it prints."""
    assert process.stdout is not None
    return process.stdout.readline()


class Fakes:
    """Sockets in /dev/shm to which a program of a container listens."""

    def __init__(self, stack: ExitStack, container: Container, *nonces: str) -> None:
        folders = json.dumps([f"/dev/shm/mpirt-{nonce}" for nonce in nonces])
        self._process = running(stack, container.enter(sys.executable, "-c", _FAKES, folders))
        assert line_of(self._process) == "\n"

    def heard(self) -> bytes:
        """All that was said to them."""
        said, _ = self._process.communicate(timeout=DEADLINE)
        return bytes.fromhex(said)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """What ends with the test."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(params=[False, True], ids=["own processes", "shared processes"])
def other(request: pytest.FixtureRequest, container: Container) -> Container:
    """Another container of the pod."""
    return container.sidecar(shares_processes=request.param)


class TestAProgramOfAnotherContainer:
    def test_can_not_attach_to_a_session(self, container: Container, other: Container, keeper: Path) -> None:
        session = container.session(keeper)
        session.start("/bin/sh", "-c", "echo secret; read x", has_stdin=True)

        assert call(other, session, ATTACH) == b""
        assert session.line() == "secret"

    def test_can_not_fence_a_session(self, container: Container, other: Container, keeper: Path) -> None:
        session = container.session(keeper)
        session.start("/bin/cat", has_stdin=True, job="ns/train", attempt=1)

        assert call(other, session, FENCE) == b""
        session.say(b"lives\n")
        assert session.line() == "lives"

    def test_can_not_be_the_keeper_that_is_attached_to(
        self, stack: ExitStack, container: Container, other: Container, keeper: Path
    ) -> None:
        nonce = new_nonce()
        fakes = Fakes(stack, other, nonce)

        attach = subprocess.run(
            container.enter(keeper, "attach", nonce),
            input=ATTACH,
            capture_output=True,
            check=True,
            timeout=DEADLINE,
        )

        assert read_greeting(attach.stdout, nonce)[0] == "GONE"
        assert fakes.heard() == b""

    def test_can_not_keep_a_fence_from_earlier_attempts(
        self, stack: ExitStack, container: Container, other: Container, keeper: Path
    ) -> None:
        before = Fakes(stack, other, *(new_nonce() for _ in range(70)))
        earlier = container.session(keeper)
        earlier.start("/bin/cat", has_stdin=True, job="ns/train", attempt=1)
        after = Fakes(stack, other, *(new_nonce() for _ in range(70)))
        container.session(keeper).start("/bin/true", job="ns/train", attempt=2)

        with pytest.raises(Broken):
            earlier.exited()
        assert (before.heard(), after.heard()) == (b"", b"")

    def test_can_remove_the_folder_and_the_command_goes_on(
        self, container: Container, other: Container, keeper: Path
    ) -> None:
        session = container.session(keeper)
        session.start("/bin/cat", has_stdin=True)
        subprocess.run(other.enter("rm", "-r", f"/dev/shm/mpirt-{session.nonce}"), check=True)

        session.say(b"lives\n")
        assert session.line() == "lives"

    def test_can_occupy_a_name_and_the_next_place_is_used(
        self, container: Container, other: Container, keeper: Path
    ) -> None:
        nonce = new_nonce()
        subprocess.run(container.enter("mount", "-t", "tmpfs", "none", "/mnt"), check=True)
        subprocess.run(other.enter("mkdir", "-m", "0", f"/dev/shm/mpirt-{nonce}"), check=True)
        session = container.session(keeper, nonce=nonce, prefix=("env", "TMPDIR=/mnt"))
        session.start("/bin/ls", "/mnt")

        assert session.line() == f"mpirt-{nonce}"


def test_a_caller_that_has_ended_is_not_taken_for_the_process_that_has_its_number_now(
    stack: ExitStack, container: Container, keeper: Path
) -> None:
    if tuple(map(int, platform.release().split(".")[:2])) < (6, 5):
        pytest.skip("needs Linux 6.5")
    session = container.session(keeper)
    other = container.sidecar(shares_processes=True)
    os.kill(session.keeper, signal.SIGSTOP)
    path = f"/dev/shm/mpirt-{session.nonce}/socket"
    caller = running(stack, other.enter(sys.executable, "-c", _CALL_AND_END, path, ATTACH.hex()))
    number = line_of(caller).strip()
    line_of(running(stack, container.enter(sys.executable, "-c", _TAKE_NUMBER, number)))

    os.kill(session.keeper, signal.SIGCONT)

    assert line_of(caller) == "\n"


def test_on_a_kernel_without_descriptors_of_peers_the_namespaces_decide(
    container: Container, tmp_path: Path
) -> None:
    keeper = build.build("keeper", tmp_path, "amd64", "-DSO_PEERPIDFD=9999")
    session = container.session(keeper)
    session.start("/bin/cat", has_stdin=True)

    assert call(container.sidecar(shares_processes=True), session, ATTACH) == b""
    assert call(container, session, ATTACH)[:1] == bytes([Kind.ATTACHED])
