"""Discovery that can't know says so, and a training that hears it goes on with the hosts that it has."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from mpirt.errors import ExitCode
from testbed import ground
from testbed.ground import Ground
from testbed.kube import cluster as kube
from testbed.kube import faults
from tests.e2e.elastic import example
from tests.e2e.elastic.steps import broken_promises, worlds
from tests.e2e.elastic.training import Training
from tests.promises import promise

_DARK_FOR = 30.0

# Horovod's own timeouts are short for a busy machine.
pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("own_cluster")]

_UNKNOWN = "Failed to execute discovery script: mpirt-discover. Exit code:"


@dataclass(frozen=True)
class Seen:
    """A training that has gone through a time in which discovery can't know, and its end."""

    failed_for: float
    """The seconds from the begin of that time until discovery failed for the last time in it."""
    run: Training
    code: int


@pytest.fixture(scope="module")
def seen(cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    with (
        ground.passing_namespace(cluster, tmp_path_factory.mktemp("dark")) as namespace,
        example.started(namespace, workers=2) as run,
    ):
        begun = time.time()
        try:
            faults.drop(only_new=True)
            run.line(_UNKNOWN, str(int(ExitCode.UNREACHABLE)), since=begun, within=30)
            run.step(lambda _: True, since=begun + _DARK_FOR, within=_DARK_FOR + 15, what="a late step")
            last_failure = max(line.at for line in run.lines(since=begun) if _UNKNOWN in line.text)
            faults.undrop()
            run.step(lambda _: True, since=time.time() + 3, within=30, what="steps in the light")
        finally:
            kube.up()
        run.finish("worker-0")
        yield Seen(last_failure - begun, run, run.exit_code(within=60))


@promise("mpirt-discover prints nothing and ends with 244 if the API server does not answer.", of="mpirt-discover")
def test_discovery_fails_while_the_api_server_takes_no_new_connections(seen: Seen) -> None:
    assert seen.failed_for > _DARK_FOR - 10


@promise("While the hosts are unknown, horovodrun keeps those it has, and no step is repeated.", of="TrainingJob")
def test_the_log_of_steps_shows_nothing_of_it(seen: Seen) -> None:
    steps = seen.run.steps()

    assert seen.code == 0
    assert worlds(steps) == [2]
    # Not one step was done again: there was no reset.
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert broken_promises(seen.run.lines()) == []
