"""The API server, and controllers that run beside it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.apiserver.certificates import Authority
from tests.apiserver.objects import ObjectServer
from tests.protocol.controller.process import Controller


@pytest.fixture
def server(authority: Authority) -> Iterator[ObjectServer]:
    """An API server with nothing in it."""
    found = ObjectServer(authority)
    found.start()
    yield found
    found.stop()


@pytest.fixture
def start(server: ObjectServer, tmp_path: Path) -> Iterator[Callable[..., Controller]]:
    """start("--no-lease") runs a controller, which ends with the test."""
    with contextlib.ExitStack() as stack:

        def begin(*words: str) -> Controller:
            number = len(list(tmp_path.glob("log-*")))
            log = tmp_path / f"log-{number}"
            begun = Controller(server.kubeconfig(tmp_path), log, words)
            stack.callback(begun.kill)
            return begun

        yield begin
