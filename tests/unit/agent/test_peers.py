"""Other containers of the launcher's pod: the same user, folders in common. No agent talks to their programs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.agent.board import DEADLINE, SERVE, Ground, ended
from tests.unit.keeper.container import OWN_PLACES

pytestmark = pytest.mark.usefixtures("root")

# A switchboard that says WELCOME, and prints what the agents say once its stdin ends.
_FAKE = """
import select, socket, struct, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(1000)
print(flush=True)
said, agents, ready = b'', [], []
while sys.stdin not in ready:
    ready, _, _ = select.select([sys.stdin, listener, *agents], [], [])
    for one in ready:
        if one is listener:
            agents.append(one.accept()[0])
            try:
                agents[-1].sendall(struct.pack('<I12xII', 8 << 8 | 1, 1, 1))
            except BrokenPipeError:
                pass
        elif one in agents:
            try:
                more = one.recv(1 << 20)
            except ConnectionResetError:
                more = b''
            said += more
            if not more:
                agents.remove(one)
print(said.hex())
"""
OTHER_CONTAINERS = pytest.mark.parametrize(
    "unshare",
    [("--mount", "--pid", "--fork", "--mount-proc"), ("--mount",)],
    ids=["own processes", "shared processes"],
)


@contextmanager
def fake(place: Path, unshare: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A program of another container that listens there."""
    place.mkdir(mode=0o700)
    words = ["unshare", *unshare, sys.executable, "-c", _FAKE, str(place / "socket")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
        yield process
        process.kill()


@OTHER_CONTAINERS
def test_a_switchboard_of_another_container_is_told_nothing(ground: Ground, unshare: Sequence[str]) -> None:
    with fake(ground.place, unshare) as other:
        code, out, err = ended(ground.start(environment={"SECRET": "x"}))
        said, _ = other.communicate(timeout=DEADLINE)

    assert (code, out, ground.handed_over().words) == (77, b"", [b"worker-0", b"true"])
    why = f"{ground.place} has a socket of another user or container"
    assert err.decode() == f"mpirt-rsh: no switchboard: {why}; this command gets one of its own\n"
    assert said == "\n"


def test_a_switchboard_is_known_by_itself_and_not_by_the_agent_that_started_it(ground: Ground) -> None:
    ground.board(SERVE)
    assert ended(ground.start())[0] == 7

    assert ended(ground.start()) == (7, b"", b"")
    assert len(ground.notes()) == 1


def test_a_switchboard_that_ends_is_followed_by_another(ground: Ground) -> None:
    """Its process may have ended when its socket is still open: here a child has it."""
    ground.board(SERVE)
    ground.place.mkdir(mode=0o700)
    code = (
        "import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1])\n"
        "if (pid := os.fork()) == 0: s.listen(); os._exit(0)\n"
        "os.waitpid(pid, 0); print(flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", code, str(ground.place / "socket")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as former:
        assert former.stdout is not None
        assert former.stdout.readline() == b"\n"

        assert ended(ground.start()) == (7, b"", b"")
        former.kill()


def test_a_pipe_in_place_of_the_log_is_not_waited_for(ground: Ground) -> None:
    ground.board(SERVE)
    ground.place.mkdir(mode=0o700)
    os.mkfifo(ground.place / "log")

    assert ended(ground.start()) == (7, b"", b"")


_HOLD_THE_LOCK = 'exec 8>"$place/lock"; flock 8;'
_FILL_THE_QUEUE = """
python3 -c 'import socket, sys, time
one = socket.socket(socket.AF_UNIX); one.bind(sys.argv[1] + "/socket"); one.listen(0)
other = socket.socket(socket.AF_UNIX); other.connect(sys.argv[1] + "/socket")
print(flush=True); time.sleep(1000)' "$place" >"$place/ready" & filler=$!
while ! [ -s "$place/ready" ]; do sleep 0.01; done;
"""


@pytest.mark.parametrize("harm", [_HOLD_THE_LOCK, _FILL_THE_QUEUE], ids=["held lock", "full queue"])
def test_a_place_that_others_keep_busy_is_left_for_the_next(ground: Ground, impatient: Path, harm: str) -> None:
    """The first is /dev/shm, the second $TMPDIR: /tmp is read-only."""
    ground.board(SERVE.replace("note(os.getpid())", ""))
    name = "mpirt-switchboard-0-$(readlink /proc/self/ns/mnt | tr -dc 0-9)"
    script = (
        f"{OWN_PLACES}; mount -t tmpfs none /mnt; place=/dev/shm/{name}; mkdir -m 700 $place;"
        f'{harm} "$@" 8>&-; echo $?; ls -d /mnt/{name}/socket; [ -z "$filler" ] || kill $filler'
    )
    environment = {**ground.environment, "TMPDIR": "/mnt"}
    del environment["MPIRT_SWITCHBOARD"]

    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *map(str, ground.words(program=impatient))],
        env=environment, capture_output=True, text=True, check=False, timeout=DEADLINE,
    )  # fmt: skip

    assert (done.stdout.split()[0], done.stderr) == ("7", "")
