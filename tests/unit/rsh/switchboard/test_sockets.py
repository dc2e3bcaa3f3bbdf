"""Where switchboards may be, and which process is at the other end. What people see of it is in cli/test_ps.py."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from mpirt.errors import UsageError
from mpirt.rsh.switchboard.sockets import NotUsed, connect, is_ours, places

_LISTEN = """
import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print(flush=True)
sys.stdin.read()
"""
# The process that connects has ended when its child goes on with the connection.
_CONNECT_AND_END = """
import os, socket, sys
caller = socket.socket(socket.AF_UNIX)
if (pid := os.fork()) == 0:
    caller.connect(sys.argv[1])
    os._exit(0)
os.waitpid(pid, 0)
print(flush=True)
sys.stdin.read()
"""


@contextmanager
def program(*words: str | Path) -> Iterator[None]:
    """One that runs meanwhile, once it has printed a line."""
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        yield
        process.kill()


def test_a_process_of_this_container_is_ours() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert is_ours(one)


def test_a_process_that_has_ended_is_one_that_nobody_listens_for(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        with (
            program(sys.executable, "-c", _CONNECT_AND_END, tmp_path / "socket"),
            listener.accept()[0] as found,
            pytest.raises(ConnectionRefusedError),
        ):
            is_ours(found)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes namespaces")
@pytest.mark.parametrize(
    "unshare",
    [("--mount", "--pid", "--fork", "--mount-proc"), ("--mount",)],
    ids=["own processes", "shared processes"],
)
def test_a_switchboard_of_another_container_is_not_used(tmp_path: Path, unshare: Sequence[str]) -> None:
    tmp_path.chmod(0o700)
    with (
        program("unshare", *unshare, sys.executable, "-c", _LISTEN, tmp_path / "socket"),
        pytest.raises(NotUsed, match="has a socket of another user or container"),
    ):
        connect(str(tmp_path), seconds=5)


def test_a_full_queue_is_not_waited_for_without_end(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as other:
        listener.bind(str(tmp_path / "socket"))
        listener.listen(0)
        other.connect(str(tmp_path / "socket"))

        with pytest.raises(NotUsed, match="can't be asked: Resource temporarily unavailable"):
            connect(str(tmp_path), seconds=0.1)


class TestPlaces:
    def test_are_those_in_which_agents_look(self) -> None:
        number = str(Path("/proc/self/ns/mnt").readlink()).removeprefix("mnt:[").removesuffix("]")
        name = f"mpirt-switchboard-{os.geteuid()}-{number}"

        assert set(places({})) == {f"/dev/shm/{name}", f"/tmp/{name}"}
        assert set(places({"TMPDIR": "/x"})) == {f"/dev/shm/{name}", f"/x/{name}", f"/tmp/{name}"}
        assert len(places({"TMPDIR": "/tmp"})) == len(places({"TMPDIR": "relative"})) == 2

    def test_on_the_file_system_of_the_root_come_first(self) -> None:
        assert places({"TMPDIR": "/"})[0].startswith("//")

    def test_on_another_file_system_come_after_dev_shm(self) -> None:
        folders = [Path(place).parent for place in places({"TMPDIR": "/proc"})]

        assert folders.index(Path("/dev/shm")) < folders.index(Path("/proc"))

    @pytest.mark.parametrize("setting", ["", "on", "off"])
    def test_are_the_usual_ones_where_none_is_named(self, setting: str) -> None:
        assert places({"MPIRT_SWITCHBOARD": setting}) == places({})

    def test_are_one_where_it_is_named(self) -> None:
        assert places({"MPIRT_SWITCHBOARD": "/x"}) == ["/x"]

    def test_must_be_absolute(self) -> None:
        with pytest.raises(UsageError, match="expected on, off or the absolute path"):
            places({"MPIRT_SWITCHBOARD": "x"})
