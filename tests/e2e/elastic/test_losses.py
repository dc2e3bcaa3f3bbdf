"""
The world of a training follows its workers: soon, and no committed step is repeated or skipped for it.

Workers die, their nodes go away, and training goes on with the rest until others have taken their place.
"""

from __future__ import annotations

import time

import pytest

from testbed.ground import Faults, Namespace
from tests.e2e.elastic import example, workers
from tests.e2e.elastic.steps import broken_promises, time_for_a_death
from tests.e2e.elastic.training import Training
from tests.promises import promise

# From a worker's death to its agent's word on it.
_TOLD = 5.0

# From the event to the first step of a smaller world.
_ON_AFTER_A_DEATH = 10.0
_ON_AFTER_A_NODE = 45.0

# A host that failed once is left out for 30 to 45 s; then its worker has to start.
_BACK_WITHIN = 90.0


@promise(
    "An elastic training goes on when workers or their node die, and takes in their successors.", of="TrainingJob"
)
def test_training_goes_on_without_workers_that_die_and_takes_their_successors_in(
    namespace: Namespace, fault: Faults
) -> None:
    with example.started(namespace, workers=4) as run:
        here = workers.node_of(namespace, run.pod)
        first, second = workers.on_node(namespace, here)
        deleted = workers.delete(namespace, first)
        # A deleted worker may be back soon, so the size of the world is not known. But no dead worker enters it.
        without_first = run.next_world(since=deleted, within=60, at_most=4)
        run.settled(run.world(4, since=without_first.at, within=_BACK_WITHIN))
        killed = time.time()
        fault.oom(namespace.kubectl, second)
        without_second = run.next_world(since=killed, within=60, at_most=3)
        whole_again = run.world(4, since=without_second.at, within=_BACK_WITHIN)
        run.settled(whole_again)
        without_node = lose_and_find_the_other_node(namespace, fault, run)
        run.world(4, since=without_node, within=_BACK_WITHIN)
        run.finish(first)
        code = run.exit_code(within=60)

    print(run.tail())
    print(f"on after {without_first.at - deleted:.1f} s (deleted), {without_second.at - killed:.1f} s (OOM kill)")
    assert code == 0
    for worker, died, step in ((first, deleted, without_first), (second, killed, without_second)):
        assert run.death(worker, since=died) - died < _TOLD
        meanwhile = run.lines(since=died, until=step.at)
        assert step.at - died < time_for_a_death(meanwhile, usual=_ON_AFTER_A_DEATH)
    assert whole_again.number > without_second.number
    assert broken_promises(run.lines()) == []


def lose_and_find_the_other_node(namespace: Namespace, fault: Faults, run: Training) -> float:
    """The node without the launcher goes, and comes back when training goes on; the moment of that step."""
    node = next(iter({"node-1", "node-2"} - {workers.node_of(namespace, run.pod)}))
    lost = time.time()
    fault.node_lost(node)
    smaller = run.world(2, since=lost, within=90)
    fault.node_back(node)
    print(f"on after {smaller.at - lost:.1f} s (node lost)")

    assert smaller.at - lost < _ON_AFTER_A_NODE, run.tail()
    return smaller.at


# From the last pod's being Ready, or the first one's being told to go, to the world that is asked for. Usual is a
# third of it; new workers need some of that to import torch, which takes longer where processors have other work.
_SOON = 15.0


@pytest.mark.quiet
@pytest.mark.oldest
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
