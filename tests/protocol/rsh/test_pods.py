"""What happens to the pod while a command runs in it is the cause that is named, with its own code."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.pods import Pod, pod
from tests.apiserver.server import ApiServer
from tests.apiserver.shell import End
from tests.protocol.rsh.agent import PATIENCE
from tests.protocol.rsh.cases import CameOf, Case, Tell

HOLDS = "echo ran >> {witness}; printf out; exec sleep 600"


def becomes(**changes: Any) -> Tell:
    """The pod is changed: a name of a field is a path, with two underscores between its words."""

    def act(server: ApiServer) -> None:
        changed: Pod = pod("w-0")
        for path, value in changes.items():
            *above, last = path.split("__")
            place: Any = changed
            for word in above:
                place = place[int(word) if word.isdigit() else word]
            place[last] = value
        server.world.put(changed)

    return act


def loses(**changes: Any) -> Tell:
    """The same, and when that is known the connection ends with the container that it leads to."""
    change = becomes(**changes)

    def act(server: ApiServer) -> None:
        change(server)
        server.world.wait_until_told(PATIENCE)
        server.wait_for_session().end(End.EOF)

    return act


def deleted(server: ApiServer) -> None:
    server.world.delete("w-0")


def replaced(server: ApiServer) -> None:
    server.world.put(pod("w-0", uid="another"))


def nothing(server: ApiServer) -> None:
    """The server is as it should be."""


# fmt: off
OOM = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
CASES = [
    Case("is deleted", nothing, 246, ("pod w-0 is being deleted; the command ended with 143",), b"out", runs=1,
         command=HOLDS, act=becomes(metadata__deletionTimestamp="2026-01-01T00:00:00Z"), slow=True),
    Case("is gone", nothing, 246, ("pod w-0 was deleted",), b"out", runs=1, command=HOLDS, act=deleted, slow=True),
    Case("is another", nothing, 246, ("pod w-0 was deleted, and another one has its name now",), b"out", runs=1,
         command=HOLDS, act=replaced, slow=True),
    Case("is evicted", nothing, 247, ("pod w-0 was evicted from node node-1",), b"out", runs=1, command=HOLDS,
         act=becomes(status__phase="Failed", status__reason="Evicted"), slow=True),
    Case("has run out of memory", nothing, 248, ("pod w-0 has ended (OOMKilled, code 137)",), b"out", runs=1,
         command=HOLDS, act=loses(status__containerStatuses__0__state=OOM), slow=True),
    Case("is restarted", nothing, 248, ("pod w-0 was restarted",), b"out", runs=1, command=HOLDS,
         act=loses(status__containerStatuses__0__restartCount=1), slow=True),
]
# fmt: on


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_command_ends_with_its_pod_and_names_the_cause(case: Case, came_of: CameOf) -> None:
    came_of(case).check(case)
