"""
A storm: a way to the API server on which no connection lives for two seconds, and the commands that start in it.

Owns: the proxy, which resets each connection after a time of its own, by the number of a seed; and commands that
leave a line in the pod when they start.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.e2e.ground import Namespace
from tests.e2e.rsh import agent
from tests.e2e.rsh.starts import kubeconfig_by_way_of, server_address

SHORTEST, LONGEST = 0.3, 2.0
_AT_ONCE = struct.pack("ii", 1, 0)
_STARTS = "/tmp/starts"
# Far beyond what a command takes on a loaded machine.
_ENDS_WITHIN = 400.0
_PIECE = 65536


class Storm:
    """A server of this machine that passes bytes on to the API server, and resets connections while it lasts."""

    def __init__(self, server: tuple[str, int], seed: str) -> None:
        self.resets = 0
        self._server, self._random = server, Random(seed)
        self._is_over = threading.Event()

    def is_over(self) -> None:
        """Connections that begin from now on live as long as they are wanted."""
        self._is_over.set()

    async def serve(self, agent: asyncio.StreamReader, to_agent: asyncio.StreamWriter) -> None:
        """See one connection through."""
        lives = None if self._is_over.is_set() else self._random.uniform(SHORTEST, LONGEST)
        try:
            with suppress(OSError):
                server, to_server = await asyncio.open_connection(*self._server)
                ways = asyncio.gather(_pass_on(agent, to_server), _pass_on(server, to_agent))
                try:
                    await asyncio.wait_for(ways, lives)
                except TimeoutError:
                    self.resets += 1
                    for side in (to_agent, to_server):
                        _reset(side)
                to_server.close()
        finally:
            to_agent.close()


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await source.read(_PIECE):
            sink.write(data)
            await sink.drain()
    sink.close()


def _reset(side: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        side.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    side.transport.abort()


@contextmanager
def storm(namespace: Namespace, seed: str) -> Iterator[tuple[Storm, Path]]:
    """A storm, and the kubeconfig of the way through it."""
    over = threading.Event()
    weather = Storm(server_address(namespace), seed)
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(_serve(weather, listener, over)))
        thread.start()
        try:
            yield weather, kubeconfig_by_way_of(namespace, listener.getsockname()[1])
        finally:
            over.set()
            thread.join()


async def _serve(weather: Storm, listener: socket.socket, over: threading.Event) -> None:
    async with await asyncio.start_server(weather.serve, sock=listener):
        await asyncio.to_thread(over.wait)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended that is to leave one line and to end with its own code."""

    number: int
    code: int | None
    output: str
    errors: str
    starts: int

    def problems(self) -> Iterator[str]:
        """What is wrong with it, in words."""
        if self.starts > 1:
            yield f"started {self.starts} times"
        if (self.code, self.output, self.starts) != (self.number % 3, f"{self.number}\n", 1):
            yield f"code {self.code} after {self.starts} starts, output {self.output!r}"


def run_all(namespace: Namespace, pods: Sequence[str], config: Path, count: int) -> list[subprocess.Popen[str]]:
    """Start so many commands, one after the other and each in the next pod."""
    for pod in pods:
        namespace.kubectl.execute(pod, "mkdir", "-p", _STARTS)
    environment = {**os.environ, "KUBECONFIG": str(config)}
    return [
        subprocess.Popen(
            [
                *(agent.RSH, "-n", "-o", f"ConnectTimeout={_ENDS_WITHIN:.0f}", pods[number % len(pods)]),
                f"echo $$ >>{_STARTS}/{number}; sleep {1 + number % 7}; echo {number}; exit {number % 3}",
            ],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]


def ends_of(namespace: Namespace, pods: Sequence[str], commands: Sequence[subprocess.Popen[str]]) -> list[Ended]:
    """Wait for all of them, and look how often each was started."""

    def end(command: subprocess.Popen[str]) -> tuple[int | None, str, str]:
        try:
            output, errors = command.communicate(timeout=_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            command.kill()
            return None, *command.communicate()
        return command.returncode, output, errors

    with ThreadPoolExecutor(len(commands)) as pool:
        ends = list(pool.map(end, commands))
    starts = Counter[int]()
    for pod in pods:
        lines = namespace.kubectl.execute(pod, "grep", "-c", "", "-r", _STARTS).splitlines()
        starts.update({int(Path(path).name): int(count) for path, count in (line.split(":") for line in lines)})
    return [Ended(number, *found, starts[number]) for number, found in enumerate(ends)]
