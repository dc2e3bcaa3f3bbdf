"""The world is as large as the StatefulSet, soon, and no committed step is repeated or skipped for it."""

from __future__ import annotations

import pytest

from testbed.ground import Namespace
from tests.e2e.elastic import example, workers
from tests.e2e.elastic.steps import broken_promises, time_for_a_death
from tests.promises import promise

# From the last pod's being Ready, or the first one's being told to go, to the world that is asked for. Usual is a
# third of it; new workers need some of that to import torch, which takes longer where processors have other work.
_SOON = 15.0

pytestmark = [pytest.mark.quiet, pytest.mark.oldest]


@promise(
    "Horovod's world follows the number of workers up and down, without repeating a committed step.",
    of="TrainingJob",
)
def test_the_world_follows_the_number_of_workers_up_and_down(namespace: Namespace) -> None:
    with example.started(namespace, workers=2, variables=example.BY_SSH_SHIM) as run:
        asked = workers.scale(namespace, 4)
        ready = workers.ready_at(namespace, ["worker-2", "worker-3"])
        grown = run.world(4, since=asked, within=90)
        run.settled(grown)
        told = workers.scale(namespace, 3)
        shrunk = run.world(3, since=told, within=90)
        run.finish("worker-0")
        code = run.exit_code(within=60)

    heard = max(step.at for step in run.steps() if step.size == 2 and step.at < grown.at)
    meanwhile = run.lines(since=told, until=shrunk.at)
    print(run.tail())
    print(f"up: heard after {heard - ready:.1f} s, done after {grown.at - ready:.1f} s")
    print(f"down: done after {shrunk.at - told:.1f} s")
    assert code == 0
    assert grown.at - ready < _SOON
    assert run.death("worker-3", since=told) - told < _SOON
    assert shrunk.at - told < time_for_a_death(meanwhile, usual=_SOON)
    assert broken_promises(run.lines()) == []
