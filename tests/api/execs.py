"""
What pods answer when the controller asks them whether they are in use.

No container runs on a plane without nodes, so the proxy on the way to the API server answers an exec itself, as an
API server would. Owns: which requests these are, and the bytes of the answer. No I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.apiserver import frames
from tests.apiserver.channel import NORMAL, STATUS, STDOUT, V4, as_go_writes_it, exit_status, switching
from tests.apiserver.connection import Request
from tests.apiserver.frames import frame, message

_UPGRADE = "websocket"


@dataclass(frozen=True)
class Answer:
    """What a pod has answered."""

    at: float
    """When, by time.monotonic()."""
    pod: str
    sessions: int
    """How many commands run in it."""


def exec_in(method: str, target: str, fields: Sequence[str]) -> Request | None:
    """The request, if it opens the WebSocket of an exec."""
    pairs = (line.partition(":") for line in fields if line)
    request = Request(method, target, {name.strip().lower(): value.strip() for name, _, value in pairs})
    is_exec = request.path.endswith("/exec") and request.headers.get("upgrade", "").lower() == _UPGRADE
    return request if is_exec else None


def pod_of(request: Request) -> str:
    """The name of the pod in which something is to be run."""
    return request.words[-2]


def answer(request: Request, sessions: int) -> bytes:
    """The whole of what a pod's keeper answers, in which so many commands run."""
    said = f"mpirt-sessions {sessions} 1\n".encode()
    return b"".join((
        switching(request, V4),
        message(STDOUT, said),
        message(STATUS, as_go_writes_it(exit_status(0))),
        frame(frames.CLOSE, NORMAL.to_bytes(2)),
    ))  # fmt: skip
