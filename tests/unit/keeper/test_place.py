"""The session's folder, and who may come in."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.unit.keeper.client import (
    Agent,
    Frame,
    Kind,
    folders,
    new_nonce,
    read_greeting,
    socket_of,
    stat_fields,
)
from tests.unit.keeper.container import OWN_PLACES, Container


def test_the_folder_is_made_on_the_file_system_of_the_root_where_there_is_one(keeper: Path) -> None:
    """No other container has it; /dev/shm is shared by those of a pod."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, ExitStack() as stack:
        if Path(folder).stat().st_dev != Path("/").stat().st_dev:
            pytest.skip("/var/tmp is on another file system")
        agent = stack.enter_context(Agent(keeper, environment={**os.environ, "TMPDIR": folder}))
        agent.start("/bin/cat", has_stdin=True)

        assert Path(folder, f"mpirt-{agent.nonce}", "socket").is_socket()


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("shm", ["", "-o ro"], ids=["dev shm", "tmpdir where dev shm takes none"])
def test_the_folder_is_made_elsewhere_where_the_file_system_of_the_root_takes_none(
    keeper: Path, containers: ExitStack, shm: str
) -> None:
    script = f"{OWN_PLACES} && mount -t tmpfs none /mnt && mount -t tmpfs {shm} none /dev/shm"
    container = Container(containers, places=script)

    session = container.session(keeper, prefix=("env", "TMPDIR=/mnt"))
    session.start("/bin/ls", "/mnt" if shm else "/dev/shm")

    assert session.line() == f"mpirt-{session.nonce}"
    container.attach(keeper, session, prefix=("env", "TMPDIR=/mnt"))


@pytest.mark.usefixtures("root")
def test_without_a_place_the_command_runs_and_cannot_be_attached_to(keeper: Path) -> None:
    script = 'mount -t tmpfs -o ro none /dev/shm; mount -t tmpfs -o ro none /tmp; exec /proc/self/fd/9 "$@"'
    prefix = ("unshare", "--mount", "/bin/sh", "-c", f"exec 9<{keeper}; {script}")
    with Agent(keeper, prefix=prefix, environment={"PATH": os.environ["PATH"], "TMPDIR": "/nowhere"}) as agent:
        started = agent.start("/bin/echo", "runs")
        agent.until_exit()

    assert (started.payload, agent.out) == (b"\0", b"runs\n")


def cpu_seconds(pid: int) -> float:
    """For how long the process has run."""
    return sum(map(int, stat_fields(pid)[11:13])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def containers() -> Iterator[ExitStack]:
    """What ends with the test."""
    with ExitStack() as stack:
        yield stack


@pytest.mark.usefixtures("root")
def test_a_peer_of_another_user_is_refused(agent: Agent) -> None:
    agent.start("/bin/sleep", "1000")
    [folder] = folders(agent.nonce)
    # Open to all, so that it is the keeper that refuses.
    folder.chmod(0o777)
    (folder / "socket").chmod(0o777)
    script = (
        "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
        "try:\n s.sendall(bytes.fromhex(sys.argv[2]))\n print(s.recv(100))\n"
        "except (BrokenPipeError, ConnectionResetError): print(b'')\n"
    )
    hello = bytes(Frame(Kind.ATTACH, 9, 0, bytes(16))).hex()
    result = subprocess.run(
        ["setpriv", "--reuid=65534", "--clear-groups", "/usr/bin/python3", "-c", script, folder / "socket", hello],
        capture_output=True,
        check=True,
    )

    assert result.stdout == b"b''\n"
    agent.send(agent.frame(Kind.BEAT, 1))
    assert agent.until(Kind.BEAT_BACK).number == 1


@pytest.mark.usefixtures("root")
def test_attach_trusts_no_socket_of_another_user(keeper: Path) -> None:
    nonce = new_nonce()
    folder = Path("/dev/shm", f"mpirt-{nonce}")
    folder.mkdir()
    os.chown(folder, 65534, -1)
    script = (
        "import os, socket, sys\nos.setuid(65534)\ns = socket.socket(socket.AF_UNIX)\n"
        "s.bind(sys.argv[1]); s.listen(); print('ready', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        ["/usr/bin/python3", "-c", script, folder / "socket"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        result = subprocess.run(
            [keeper, "attach", nonce], stdin=subprocess.DEVNULL, capture_output=True, check=True
        )
        other.kill()
    shutil.rmtree(folder)

    assert read_greeting(result.stdout, nonce)[0] == "GONE"


def test_a_keeper_without_descriptors_for_more_callers_waits_until_there_are(agent: Agent) -> None:
    agent.start("/bin/sh", "-c", "read x; sleep 1; echo over", has_stdin=True)
    # Once it has looked for strays, which is behind STARTED, it has no file of /proc open.
    agent.send(agent.frame(Kind.BEAT, 1))
    agent.until(Kind.BEAT_BACK)
    used = {int(path.name) for path in Path(f"/proc/{agent.keeper_pid}/fd").iterdir()}
    least = min(set(range(1000)) - used)
    before = resource.prlimit(agent.keeper_pid, resource.RLIMIT_NOFILE)
    resource.prlimit(agent.keeper_pid, resource.RLIMIT_NOFILE, (least, before[1]))
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(socket_of(agent.nonce))
        caller.sendall(bytes(Frame(Kind.ATTACH, 9, 0, bytes(16))))
        spent = cpu_seconds(agent.keeper_pid)
        agent.send(agent.frame(Kind.STDIN, 0, b"go\n"))
        agent.until_true(lambda: agent.out == b"over\n")
        spent = cpu_seconds(agent.keeper_pid) - spent
        resource.prlimit(agent.keeper_pid, resource.RLIMIT_NOFILE, before)

        assert caller.recv(1) == bytes([Kind.ATTACHED])
        agent.link.close()
    assert spent < 0.3


def test_a_command_is_killed_by_a_keeper_without_descriptors_to_look_for_it(agent: Agent) -> None:
    started = agent.start("/bin/sleep", "1000")
    used = [int(path.name) for path in Path(f"/proc/{agent.keeper_pid}/fd").iterdir()]
    # One for /proc, and none for what is in it.
    resource.prlimit(agent.keeper_pid, resource.RLIMIT_NOFILE, (len(used), len(used)))

    agent.end(signal.SIGKILL, grace=0)
    ended = agent.until_exit()

    assert ended.was_held is False
    assert not Path(f"/proc/{started.number}").exists()


def test_a_short_socket_path_is_enough_for_attach(agent: Agent) -> None:
    with socket.socket(socket.AF_UNIX) as direct:
        direct.connect(socket_of(agent.nonce))
        direct.sendall(bytes(Frame(Kind.ATTACH, 1, 0, bytes(16))))

        assert direct.recv(1) == bytes([Kind.ATTACHED])
