"""What an API server answers to a watch, as literal bytes."""

from __future__ import annotations

import json

from mpirt.kubeapi.watch.listwatch import PodWatch

PODS = "/api/v1/namespaces/ml/pods"
WATCHING = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def answer(body: object, status: int = 200, headers: bytes = b"") -> bytes:
    text = json.dumps(body).encode()
    return b"HTTP/1.1 %d X\r\n%bContent-Length: %d\r\n\r\n%b" % (status, headers, len(text), text)


def no(status: int, headers: bytes = b"") -> bytes:
    return answer({"kind": "Status", "code": status, "message": "no"}, status, headers)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(kind: str, thing: object) -> bytes:
    return chunk(json.dumps({"type": kind, "object": thing}).encode() + b"\n")


def asked(made: PodWatch, now: float) -> str:
    """The target of the next question, without what all have in common."""
    return made.ask(now).target.removeprefix(PODS)
