"""
The exec of kubelets: commands of pods that KWOK plays run as processes of this machine.

Owns: a kubelet's answer to exec by WebSocket, v4.channel.k8s.io, for pods of any number of nodes; and what a pod
has for itself: its processes, and a folder, its TMPDIR. HOME is the same for all; programs in its folder bin are
found first. A command gets nothing else of its pod: no image, no volumes, no variables. No other protocol, no
terminal.

A few pods share namespaces: without any, whatever looks into /proc would see the processes of all pods; and one
first process for each would be too many where there are thousands.
"""

from __future__ import annotations

import asyncio
import base64
import ctypes
import gc
import hashlib
import json
import os
import resource
import signal
import ssl
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from testbed.kube.commandlines import Site
from testbed.kube.wait import until
from testbed.plane import children, place
from testbed.plane.children import Child

_PROTOCOL = "v4.channel.k8s.io"
_STDIN, _STDOUT, _STDERR, _STATUS = range(4)
_BINARY, _CLOSE, _PING, _PONG = 2, 8, 9, 10
_NORMAL = (1000).to_bytes(2)
_KEY_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
# A runtime's messages carry no more.
_LARGEST = 32 * 1024
# All agents of a job may call in the same moment.
_BACKLOG = 4096
_READY_WITHIN = 120.0
_PATH = "/usr/bin:/bin"
# Who is not root may make namespaces in one of users, and return to those that belong to it.
_AS_ROOT = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc")
# So many pods share namespaces.
_TOGETHER = 8
_FIRST_PROCESS = "mount -t proc proc /proc && echo && read -r line"
# From <linux/sched.h> and <linux/mount.h>.
_NEWNS, _NEWPID = 0x00020000, 0x20000000
_PRIVATE = 0x40000 | 0x4000


@dataclass(frozen=True, slots=True)
class Kubelet:
    """Where one listens, or will."""

    address: str
    port: int


def somewhere(site: Site) -> Kubelet:
    """Where one may listen for nodes of that control plane."""
    [port] = place.free_ports(site.address, 1)
    return Kubelet(site.address, port)


@contextmanager
def running(where: Kubelet, site: Site, folder: Path, *, pods: Iterable[str] = ()) -> Iterator[Child]:
    """
    A process that answers there. Its pods have their folders in this one, which is their HOME.

    What else a pod has is made for its first command, or for `pods` before there is one. All ends with the block.
    """
    name = f"kubelet-{where.port}"
    # Whoever asks does not look at the name in the certificate.
    files = [str(each) for each in (site.secrets.api_certificate, site.secrets.api_key, folder)]
    words = [sys.executable, "-m", __name__, where.address, str(where.port), *files, *pods]
    argv = words if os.geteuid() == 0 else [*_AS_ROOT, *words]
    child = children.start(argv, site.folder / f"{name}.log")
    try:
        until(lambda: child.log.read_text() or child.is_over, within=_READY_WITHIN, what=name)
        yield child
    finally:
        child.kill()


class _Pods:
    """The namespaces of pods, and their processes."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        # What is mounted for a pod must not be mounted for all.
        self._call("unshare", _NEWNS)
        self._call("mount", None, b"/", None, _PRIVATE, None)
        self._mounts, self._pids = (os.open(f"/proc/self/ns/{kind}", os.O_RDONLY) for kind in ("mnt", "pid"))
        # The first process of namespaces reads from this: so it ends with this process, and all others with it.
        self._lifeline, self._held = os.pipe()
        self._first: dict[str, int] = {}
        self._newest = -1
        # Waited for all at once: one descriptor or thread for each would be too many.
        self._ends: dict[int, asyncio.Future[int]] = {}

    def make(self, pod: str) -> None:
        """Make the namespaces of a pod, if it does not share them with the one before."""
        if len(self._first) % _TOGETHER == 0:
            self._newest = self._made()
        self._first[pod] = self._newest

    def _made(self) -> int:
        """Make namespaces; returns a descriptor of their first process, when it has its own /proc."""
        said, says = os.pipe()
        self._call("setns", self._pids, _NEWPID)
        self._call("unshare", _NEWNS | _NEWPID)
        try:
            pid = self._spawn(["/bin/sh", "-c", _FIRST_PROCESS], {"PATH": _PATH}, (self._lifeline, says))
        finally:
            self._call("setns", self._mounts, _NEWNS)
        os.close(says)
        if not os.read(said, 1):
            raise OSError("a pod has no /proc of its own")
        os.close(said)
        return os.pidfd_open(pid)

    def start(
        self, pod: str, argv: list[str], env: Mapping[str, str], pipes: Sequence[int]
    ) -> asyncio.Future[int]:
        """Start a process in a pod with these descriptors; returns its exit code, when it has ended."""
        if pod not in self._first:
            self.make(pod)
        self._call("setns", self._first[pod], _NEWNS | _NEWPID)
        try:
            pid = self._spawn(argv, env, pipes)
        finally:
            self._call("setns", self._mounts, _NEWNS)
        return self._ends.setdefault(pid, asyncio.get_running_loop().create_future())

    def reap(self) -> None:
        """Wait for all that have ended."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                code = os.waitstatus_to_exitcode(ended[1])
                if waiting := self._ends.pop(ended[0], None):
                    waiting.set_result(code if code >= 0 else 128 - code)

    def _spawn(self, argv: list[str], env: Mapping[str, str], pipes: Sequence[int]) -> int:
        actions = [(os.POSIX_SPAWN_DUP2, pipe, number) for number, pipe in enumerate(pipes)]
        # Python ignores this signal, and commands would inherit that.
        defaults = (signal.SIGPIPE,)
        return os.posix_spawn(argv[0], argv, env, file_actions=actions, setsid=True, setsigdef=defaults)

    def _call(self, name: str, *words: object) -> None:
        if self._libc[name](*words) != 0:
            raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


@dataclass(frozen=True, slots=True)
class _Server:
    folder: Path
    pods: _Pods

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            request, *lines = head.splitlines()
            url = urlsplit(request.split()[1])
            headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}
            offered = headers.get("sec-websocket-protocol", "")
            if not url.path.startswith("/exec/") or _PROTOCOL not in offered:
                writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            else:
                writer.write(_accepted(headers["sec-websocket-key"]) + _message(_STDOUT))
                _, _, _, pod, _ = url.path.split("/")
                await self._exec(pod, parse_qs(url.query)["command"], reader, writer)
        writer.close()

    async def _exec(
        self, pod: str, argv: list[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Run a command to its end. If the client leaves before, its stdin ends, and its output is dropped."""
        temporary = self.folder / pod
        temporary.mkdir(exist_ok=True)
        env = {"HOME": str(self.folder), "TMPDIR": str(temporary), "PATH": f"{self.folder}/bin:{_PATH}"}
        (stdin, feed), (out, stdout), (err, stderr) = os.pipe(), os.pipe(), os.pipe()
        ended = self.pods.start(pod, argv, env, (stdin, stdout, stderr))
        for each in (stdin, stdout, stderr):
            os.close(each)
        loop = asyncio.get_running_loop()
        to_command, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(feed, "wb", buffering=0))
        outputs = [asyncio.create_task(_passed_on(pipe, channel, writer))
                   for pipe, channel in ((out, _STDOUT), (err, _STDERR))]  # fmt: skip
        carried = asyncio.create_task(_carry(reader, writer, to_command))
        end = asyncio.create_task(_reported(ended, outputs, writer))
        await asyncio.wait((carried, end), return_when=asyncio.FIRST_COMPLETED)
        for task in (carried, end, *outputs):
            task.cancel()
        to_command.close()


async def _carry(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, to_command: asyncio.WriteTransport
) -> None:
    """Pass the client's stdin on, and answer its pings, until it leaves."""
    async for opcode, payload in _frames(reader):
        if opcode == _PING:
            writer.write(_frame(_PONG, payload))
        elif opcode == _CLOSE:
            return
        elif opcode == _BINARY and payload[:1] == bytes((_STDIN,)):
            to_command.write(payload[1:])


async def _passed_on(pipe: int, channel: int, writer: asyncio.StreamWriter) -> None:
    """Pass on what comes from a pipe, to its end."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(pipe, "rb", buffering=0)
    )
    try:
        with suppress(OSError):
            while data := await reader.read(_LARGEST):
                writer.write(_message(channel, data))
                await writer.drain()
    finally:
        transport.close()


async def _reported(
    ended: asyncio.Future[int], outputs: list[asyncio.Task[None]], writer: asyncio.StreamWriter
) -> None:
    """Say how the command has ended, when all its output is passed on."""
    await asyncio.gather(*outputs)
    code = await ended
    status: dict[str, object] = {"metadata": {}, "status": "Failure" if code else "Success"}
    if code:
        causes = [{"reason": "ExitCode", "message": str(code)}]
        status |= {"reason": "NonZeroExitCode", "details": {"causes": causes}}
    writer.write(_message(_STATUS, json.dumps(status).encode()) + _frame(_CLOSE, _NORMAL))


def _accepted(key: str) -> bytes:
    digest = base64.b64encode(hashlib.sha1(f"{key}{_KEY_SUFFIX}".encode()).digest()).decode()
    lines = ("HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
             f"Sec-WebSocket-Accept: {digest}", f"Sec-WebSocket-Protocol: {_PROTOCOL}")  # fmt: skip
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _message(channel: int, data: bytes = b"") -> bytes:
    return _frame(_BINARY, bytes((channel,)) + data)


def _frame(opcode: int, payload: bytes) -> bytes:
    size = len(payload)
    return bytes((0x80 | opcode, size) if size < 126 else (0x80 | opcode, 126, *size.to_bytes(2))) + payload


async def _frames(reader: asyncio.StreamReader) -> AsyncIterator[tuple[int, bytes]]:
    """The client's frames, until its connection ends. All are masked, and none is a fragment."""
    with suppress(OSError, asyncio.IncompleteReadError):
        while True:
            first, size = await reader.readexactly(2)
            if (size := size & 0x7F) >= 126:
                size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8))
            mask, masked = await reader.readexactly(4), await reader.readexactly(size)
            key = (mask * (size // 4 + 1))[:size]
            yield first & 0x0F, (int.from_bytes(masked) ^ int.from_bytes(key)).to_bytes(size)


async def _main(address: str, port: str, certificate: str, key: str, folder: str, *pods: str) -> None:
    server = _Server(Path(folder), _Pods())
    for pod in pods:
        server.pods.make(pod)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, server.pods.reap)
    listening = await asyncio.start_server(server.serve, address, int(port), ssl=context, backlog=_BACKLOG)
    print("serves", port, flush=True)
    # None of what there is by now is ever garbage.
    gc.freeze()
    await listening.serve_forever()


if __name__ == "__main__":
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(_main(*sys.argv[1:]))
