"""
A pod with another container of the same user, which runs a hostile program: what it can reach of a launcher and
of a worker. Both are one container here. The table in SECURITY.md says what is expected.

Its programs run with the Python of the runtime folder, so every image will do.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from testbed import manifests
from testbed.ground import Namespace
from tests.e2e.rsh.launcher import rules
from tests.e2e.runtime import launcher
from tests.promises import promise
from tests.unit.keeper.client import Frame, Kind

RSH = f"{launcher.PLACE}/bin/mpirt-rsh"
POD, MAIN, SIDECAR = "pair", "main", "sidecar"

# The Python of the folder, as mpirt's own programs are started.
_PYTHON = (
    f'root=$(cd -P {launcher.PLACE}/bin/.. && pwd) && exec "$root/lib/ld.so" --inhibit-cache --library-path '
    '"$root/lib" --argv0 "$root/bin/mpirt" "$root/lib/python" -I -S -c "$@"'
)
# Attaches to every socket of mpirt's that can be seen: a keeper answers that, and a switchboard greets all. With
# shared processes, the other container's files are below /proc.
_ATTACK = """
import glob, json, socket, sys
roots = ("/dev/shm", "/tmp", "/proc/[0-9]*/root/dev/shm", "/proc/[0-9]*/root/tmp")
found = {}
for path in sorted(path for root in roots for path in glob.glob(root + "/mpirt-*/socket")):
    caller = socket.socket(socket.AF_UNIX)
    caller.settimeout(30)
    try:
        caller.connect(path)
        caller.sendall(bytes.fromhex(sys.argv[1]))
        found[path] = caller.recv(100).hex()
    except (BrokenPipeError, ConnectionResetError):
        found[path] = ""
print(json.dumps(found))
"""
# Listens where the launcher's switchboard does, and prints what is said to it when its stdin ends.
_FAKE = """
import os, select, socket, struct, sys
folder = f"/dev/shm/mpirt-switchboard-{os.getuid()}-{sys.argv[1]}"
os.makedirs(folder, 0o700, exist_ok=True)
if os.path.exists(folder + "/socket"):
    os.unlink(folder + "/socket")
listener = socket.socket(socket.AF_UNIX)
listener.bind(folder + "/socket")
listener.listen()
print("listens", flush=True)
said, callers, ready = b"", [], []
while sys.stdin not in ready:
    ready, _, _ = select.select([sys.stdin, listener, *callers], [], [])
    for one in ready:
        try:
            if one is listener:
                callers.append(one.accept()[0])
                callers[-1].sendall(struct.pack("<I12xII", 8 << 8 | 1, 1, 1))
            elif one in callers:
                said += (more := one.recv(1 << 20))
                if not more:
                    callers.remove(one)
        except (BrokenPipeError, ConnectionResetError):
            callers = [each for each in callers if each is not one]
print(said.hex())
"""


@dataclass(frozen=True)
class Pair:
    """What both containers and their pod have."""

    name: str
    sees_sockets: bool
    """Whether the sidecar sees those of the main container."""
    own: Mapping[str, str] = field(default_factory=dict)
    """Volumes of the main container alone, and where they are."""
    confined: bool = False
    spec: Mapping[str, Any] = field(default_factory=dict)

    def start(self, namespace: Namespace) -> None:
        """Start it, with an account that may start commands in its main container."""
        account = namespace.account("launcher", rules=rules([POD]))
        image = namespace.ground.image("busybox")
        namespace.pod(
            POD,
            "busybox",
            service_account=account,
            initContainers=[launcher.installer(namespace, "install", volume="mpirt")],
            containers=[
                self._container(image, MAIN, {"mpirt": launcher.PLACE, **self.own}),
                self._container(image, SIDECAR, {"mpirt": launcher.PLACE}),
            ],
            volumes=launcher.volumes("mpirt", *self.own),
            **self.spec,
        )

    def _container(self, image: str, name: str, mounts: Mapping[str, str]) -> manifests.Manifest:
        limits = launcher.confined(mounts)
        if not self.confined:
            del limits["securityContext"]
        variables = [{"name": "MPIRT_CONTAINER", "value": MAIN}, {"name": "SECRET", "value": "x"}]
        return {**manifests.idle_container(image), **limits, "name": name, "env": variables}


PAIRS = (
    Pair("root", sees_sockets=False),
    Pair("read-only root file system", sees_sockets=True, own={"tmp": "/tmp"}, confined=True),
    Pair("shared processes", sees_sockets=True, spec={"shareProcessNamespace": True}),
)


@contextmanager
def running(namespace: Namespace, container: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A program in that container, with pipes."""
    argv = namespace.kubectl.argv("exec", "--stdin", POD, "--container", container, "--", *words)
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def python(code: str, *words: str) -> Sequence[str]:
    """The words that run Python in a container."""
    return ("/bin/sh", "-c", _PYTHON, "sh", code, *words)


def line(process: subprocess.Popen[str]) -> str:
    """The next line that it prints."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


@promise(
    "A hostile container of the same pod gets nothing from agent or keeper, and disturbs no command.", of="safety"
)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_hostile_container_of_the_pod_gets_nothing_and_disturbs_no_command(
    namespace: Namespace, pair: Pair
) -> None:
    pair.start(namespace)
    attach = bytes(Frame(Kind.ATTACH, 99, 0, bytes(16))).hex()
    with running(namespace, MAIN, RSH, POD, "echo begun; read -r x; echo over $x; exit 7") as command:
        assert line(command) == "begun"

        with running(namespace, SIDECAR, *python(_ATTACK, attach)) as attack:
            attacked, complaints = attack.communicate(timeout=120)
        answers = json.loads(attacked or complaints)
        mount_namespace = namespace.kubectl.execute(POD, "readlink", "/proc/self/ns/mnt").strip("mnt:[]\n")
        with running(namespace, SIDECAR, *python(_FAKE, mount_namespace)) as fake:
            assert line(fake) == "listens"
            with running(namespace, MAIN, RSH, POD, "echo second") as second:
                told = second.communicate(timeout=60)
            heard, _ = fake.communicate(timeout=60)
        ended = command.communicate("now\n", timeout=60)

    assert {("switchboard" in path) for path in answers} == ({True, False} if pair.sees_sockets else set())
    assert set(answers.values()) <= {""}
    assert (second.returncode, *told) == (0, "second\n", "")
    assert heard == "\n"
    assert (command.returncode, *ended) == (7, "over now\n", "command terminated with exit code 7\n")
