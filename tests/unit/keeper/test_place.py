"""The session's folder, and who may come in."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.unit.keeper.client import Agent, Frame, Kind, new_nonce, read_greeting


@pytest.mark.usefixtures("root")
def test_the_folder_is_made_in_tmpdir_where_dev_shm_takes_none(keeper: Path, tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o ro none /dev/shm; exec "$0" "$@"'
    prefix = ("unshare", "--mount", "/bin/sh", "-c", script)
    with Agent(keeper, prefix=prefix, environment={**os.environ, "TMPDIR": str(tmp_path)}) as agent:
        started = agent.start("/bin/cat", has_stdin=True)
        assert (tmp_path / f"mpirt-{agent.nonce}" / "socket").is_socket()

        agent.attach(again=True)

        assert started.payload == b"\1"


@pytest.mark.usefixtures("root")
def test_without_a_place_the_command_runs_and_cannot_be_attached_to(keeper: Path) -> None:
    script = 'mount -t tmpfs -o ro none /dev/shm; mount -t tmpfs -o ro none /tmp; exec /proc/self/fd/9 "$@"'
    prefix = ("unshare", "--mount", "/bin/sh", "-c", f"exec 9<{keeper}; {script}")
    with Agent(keeper, prefix=prefix, environment={"PATH": os.environ["PATH"], "TMPDIR": "/nowhere"}) as agent:
        started = agent.start("/bin/echo", "runs")
        agent.until_exit()

    assert (started.payload, agent.out) == (b"\0", b"runs\n")


@pytest.mark.usefixtures("root")
def test_a_peer_of_another_user_is_refused(agent: Agent) -> None:
    agent.start("/bin/sleep", "1000")
    folder = Path("/dev/shm", f"mpirt-{agent.nonce}")
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


def test_a_short_socket_path_is_enough_for_attach(agent: Agent) -> None:
    with socket.socket(socket.AF_UNIX) as direct:
        direct.connect(f"/dev/shm/mpirt-{agent.nonce}/socket")
        direct.sendall(bytes(Frame(Kind.ATTACH, 1, 0, bytes(16))))

        assert direct.recv(1) == bytes([Kind.ATTACHED])
