"""What informers report to: lists and a log."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from mpirt.controller.model.reading import Body


class Sink:
    """What is told of a list."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.listed = threading.Event()

    def needed(self, _kind: str, body: Body) -> Body:
        return body

    def replaced(self, _kind: str, bodies: Iterable[Body], _version: str) -> None:
        self.names = [body["metadata"]["name"] for body in bodies]
        self.listed.set()

    def changed(self, kind: str, body: Body) -> None:
        raise AssertionError((kind, body))

    removed = changed

    def unreadable(self, _kind: str) -> None:
        self.names = []


class Silent:
    """A log that nobody reads."""

    def info(self, message: str, **fields: Any) -> None: ...

    warning = error = info
