"""A controller that is killed after a write that it never got the answer to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.apiserver.objects import ObjectServer
from tests.protocol.controller.process import JOB, WITHIN, Controller, job, made, wait_until_made

Start = Callable[..., Controller]

# A ConfigMap, an account, a Service, a StatefulSet, an event, the status.
WRITES = 6


# By a controller without a lease each; tests/api kills one after every kind of write, too.
@pytest.mark.sample(1)
@pytest.mark.parametrize("write", range(1, WRITES + 1))
def test_the_next_one_brings_about_the_same(server: ObjectServer, start: Start, write: int) -> None:
    server.stick_at(write)
    controller = start("--no-lease")
    server.storage.create(JOB, job())
    assert server.stuck.wait(WITHIN)
    controller.kill()
    server.stick_at(None)

    start("--no-lease")
    wait_until_made(server)

    assert made(server) == {plural: names for plural, names in made(server).items() if len(names) == 1}
    assert len(server.storage.names("events")) == 1
    assert conditions(server) == {
        "Created": ("True", "MPIJobCreated"),
        "Running": ("False", "MPIJobWorkersNotReady"),
    }


def conditions(server: ObjectServer) -> dict[str, tuple[str, str]]:
    found: list[dict[str, Any]] = server.storage.get(JOB)["status"]["conditions"]
    return {each["type"]: (each["status"], each["reason"]) for each in found}
