"""
Runs a short program in a pod and returns what it prints.

Owns: one WebSocket at a time, with one deadline for all of it. Long commands, and such as must outlive a broken
connection, are mpirt-rsh's.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator

from mpirt.controller.cluster.link import Away
from mpirt.controller.cluster.questions import Output
from mpirt.errors import MpirtError
from mpirt.kubeapi.access.endpoint import Endpoint
from mpirt.kubeapi.access.steps import Deadline
from mpirt.kubeapi.request import channels, websocket
from mpirt.kubeapi.request.answers import ProtocolRefused
from mpirt.kubeapi.request.asks import Ask, exec_in_pod
from mpirt.kubeapi.request.dial import Dialer
from mpirt.kubeapi.request.execs import ExecApi, Upgraded

_LONGEST = 4096
_MASK = 4


class PodExecutor:
    """Runs programs in pods. May be used by several threads: each run has a connection of its own."""

    def __init__(self, endpoint: Callable[[], Endpoint]) -> None:
        """`endpoint` finds the API server; it is called for each run, and may raise MpirtError."""
        self._endpoint = endpoint

    def run(self, namespace: str, pod: str, container: str, command: tuple[str, ...], *, within: float) -> Output:
        """Run a program and return its output. Raises Away if that fails."""
        deadline = Deadline(within)
        try:
            api = ExecApi(Dialer(self._endpoint()))
            try:
                asked = exec_in_pod(namespace, pod, container=container, command=command)
                return _output(_opened(api, asked, deadline), deadline)
            finally:
                api.close()
        except (MpirtError, OSError) as error:
            raise Away(str(error)) from error


def _opened(api: ExecApi, asked: Ask, deadline: Deadline) -> Upgraded:
    try:
        return api.open_exec(asked, (channels.V4,), deadline)
    except ProtocolRefused:
        return api.open_exec(asked, (channels.V5,), deadline)


def _output(upgraded: Upgraded, deadline: Deadline) -> Output:
    """Read until the program's end is reported."""
    parser, stdout = channels.Channels(), bytearray()
    try:
        for message in _messages(upgraded, deadline):
            match parser.receive(message):
                case channels.Output(stream=channels.STDOUT, data=data) if len(stdout) < _LONGEST:
                    stdout += data
                case channels.Succeeded():
                    return Output(stdout.decode("ascii", "replace"), 0)
                case channels.ExitedWith(code=code):
                    return Output(stdout.decode("ascii", "replace"), code)
                case channels.Failed(message=told):
                    raise Away(told)
    finally:
        upgraded.stream.close()
    raise Away("the connection ended before the program's end was reported")


def _messages(upgraded: Upgraded, deadline: Deadline) -> Iterator[bytes]:
    reader = websocket.FrameReader()
    for data in _received(upgraded, deadline):
        for event in reader.feed(data):
            match event:
                case websocket.Message(data=message):
                    yield message
                case websocket.Ping(data=ping):
                    upgraded.stream.write(websocket.pong(ping, os.urandom(_MASK)))
                case websocket.Closed():
                    return


def _received(upgraded: Upgraded, deadline: Deadline) -> Iterator[bytes]:
    """Yield what arrives until the connection ends. Raises Away at the deadline."""
    stream, data = upgraded.stream, upgraded.leftover or None
    while data != b"":
        if data is not None:
            yield data
        elif deadline.passed():
            raise Away(f"no answer within {deadline}")
        else:
            poll = select.poll()
            poll.register(stream.fileno(), stream.wants)
            poll.poll(deadline.left() * 1000)
        data = stream.read()
