"""
Jobs that lose a worker while their ranks run, and what they say of it.

Owns: which launcher, strike, moment and shell line a job has, and whether what it says in the end is true.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
from random import Random
from typing import Any

from testbed.kube import cluster, faults, network, nodes
from testbed.manifests import on
from tests.e2e.controller import losing
from tests.e2e.controller.deployed import Deployed, job_name
from tests.e2e.controller.losing import Strike
from tests.e2e.lostnode import jobs
from tests.support.stories import Story, condition, held, story

LAUNCHERS = ("openmpi4", "openmpi5", "mpich")
RETRIES = 2
# How long the ranks of a first run reduce over each other, and how long they go on after MPI_Finalize.
RUN, TAIL = 20.0, 6.0
# What befalls a node befalls several jobs at once: none may be over before the last one runs.
_UNTIL_ALL_RUN = 180.0
# Longer than a controller waits for word from the nodes where nothing is left unheard, by far.
_LATE = 10.0
# mpiexec of MPICH takes no notice of its agents' ends, and waits for its proxy on the lost node for ever.
_DEADLINE = 180
# A node has room for nine launchers.
_AT_ONCE = 6


class Loss(Enum):
    """How a job loses a worker."""

    DELETED = "worker deleted"
    FORCED = "worker deleted by force"
    PROBE = "worker restarted by its probe"
    TERM = "TERM to process 1"
    LATE = "worker killed, its node reports it late"
    NODE = "node lost"


STRIKES: Mapping[Loss, Strike] = {
    Loss.DELETED: losing.delete_worker,
    Loss.FORCED: losing.delete_worker_by_force,
    Loss.PROBE: losing.fail_probe_of_worker,
    Loss.TERM: losing.end_worker,
}
"""Those that a single job can have."""


Befalls = Callable[[Sequence[Story]], AbstractContextManager[None]]
"""What befalls the node of a worker of each of several jobs."""


class Line(Enum):
    """What runs mpirun, so that its code reaches Kubernetes, or not."""

    PLAIN = "mpirun"
    PIPED = "mpirun | cat"
    PATIENT = "until mpirun"


_BEFORE: Mapping[Line, Sequence[str]] = {
    Line.PLAIN: (),
    Line.PIPED: losing.PIPED,
    Line.PATIENT: losing.PATIENTLY,
}


@dataclass(frozen=True, slots=True)
class Case:
    """One job, and what is in store for it."""

    launcher: str
    loss: Loss
    line: Line
    retries: int
    moment: float
    """Seconds from when its ranks run to the strike; what befalls a node befalls all at the same time."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the struck launcher ended with, what the job said of it, and what the job came to."""

    case: Case
    ended: str
    judged: str
    end: str
    reason: str
    finished: frozenset[str]
    """The ranks that have finished in the last run of the last launcher."""
    lines: str

    @property
    def is_lie(self) -> bool:
        return self.end == "Succeeded" and len(self.finished) != 2


def drawn(random: Random, loss: Loss, jobs_each: int) -> list[Case]:
    """So many jobs of each launcher, with every shell line in turn."""
    return [
        Case(
            launcher, loss, list(Line)[n % len(Line)], random.choice((0, RETRIES)), random.uniform(0.0, RUN + TAIL)
        )
        for n in range(jobs_each)
        for launcher in LAUNCHERS
    ]


def play(controller: Deployed, cases: Sequence[Case]) -> list[Outcome]:
    """Let all of a loss happen, each job at its moment; what befalls a node befalls several at once."""
    befalls = _OF_A_NODE.get(cases[0].loss)
    if befalls is not None:
        batches = [cases[first : first + _AT_ONCE] for first in range(0, len(cases), _AT_ONCE)]
        return [outcome for batch in batches for outcome in _strike_together(controller, batch, befalls)]
    with ThreadPoolExecutor(_AT_ONCE) as side_by_side:
        return list(side_by_side.map(partial(_strike, controller), cases))


def _strike(controller: Deployed, case: Case) -> Outcome:
    with _running(controller, case) as one:
        # The schedule's own time; nothing tells of it.
        time.sleep(case.moment)
        STRIKES[case.loss](one.job)
        return _outcome(case, one)


def _strike_together(controller: Deployed, cases: Sequence[Case], befalls: Befalls) -> list[Outcome]:
    assert controller.namespace.ground.is_ours
    with ExitStack() as jobs_run, ThreadPoolExecutor(len(cases)) as side_by_side:
        entered = side_by_side.map(lambda case: jobs_run.enter_context(_running(controller, case)), cases)
        stories = list(entered)
        with befalls(stories):
            return list(side_by_side.map(_outcome, cases, stories))


@contextmanager
def _node_lost(_: Sequence[Story]) -> Iterator[None]:
    faults.node_lost(faults.node_named(jobs.LOST))
    try:
        yield
    finally:
        cluster.up()


@contextmanager
def _killed_and_reported_late(stories: Sequence[Story]) -> Iterator[None]:
    node = faults.node_named(jobs.LOST)
    pods = [pod for one in stories for pod in one.job.pods("worker") if pod["spec"]["nodeName"] == jobs.LOST]
    assert len(pods) == len(stories)
    processes = [nodes.main_process_of_pod(node, pod["metadata"]["uid"]) for pod in pods]
    network.drop(source=str(node.address))
    try:
        for process in processes:
            os.kill(process, signal.SIGKILL)
        # How late it is; nothing tells of it.
        time.sleep(_LATE)
    finally:
        network.undrop()
    yield


_OF_A_NODE: Mapping[Loss, Befalls] = {Loss.NODE: _node_lost, Loss.LATE: _killed_and_reported_late}


@contextmanager
def _running(controller: Deployed, case: Case) -> Iterator[Story]:
    """The job of a case, when its ranks run."""
    name, is_of_node = job_name("chaos"), case.loss in _OF_A_NODE
    of_node = {
        "worker": {**jobs.rather_apart(name), **(jobs.impatient() if case.loss is Loss.NODE else {})},
        "launcher": on(jobs.KEPT),
        "policy": {"activeDeadlineSeconds": _DEADLINE},
    }
    job = losing.start(
        controller.namespace,
        name,
        retries=case.retries,
        image=case.launcher,
        probe=losing.PROBE if case.loss is Loss.PROBE else None,
        before=_BEFORE[case.line],
        program=losing.long_program(first=_UNTIL_ALL_RUN if is_of_node else RUN, last=0.0 if is_of_node else TAIL),
        **(of_node if is_of_node else {}),
    )
    with story(job) as told:
        told.until("Running")
        losing.wait_until_ranks_run(job)
        yield told
    controller.namespace.kubectl("delete", "mpijobs.kubeflow.org", name, "--wait=false")


def _outcome(case: Case, one: Story) -> Outcome:
    """Wait for the job's end."""
    end = one.end()
    # A job that has nothing to tell of itself has none.
    attempts = end.body["status"].get("attempts", [{}])
    kind = "Succeeded" if "Succeeded" in held(end) else "Failed"
    restarts = [state for state in one.told.states if "Restarting" in held(state)]
    # Kubernetes deletes the pods of a Job that has used up its time.
    log = losing.said(one.job) if kind == "Succeeded" else []
    return Outcome(
        case,
        ended=_ended(attempts[0]),
        judged=condition(restarts[0], "Restarting")["reason"] if restarts else condition(end, kind)["reason"],
        end=kind,
        reason=condition(end, kind)["reason"],
        finished=finished_ranks(log),
        lines="\n".join([str(case), one.lines(), str(attempts), *losing.last_messages(one.job), *log]),
    )


def rows(outcomes: Iterable[Outcome]) -> list[list[str]]:
    """A table: what was struck, what became of it, and how often."""
    counted = Counter(
        (one.case.launcher, one.case.loss.value, one.case.line.value, one.ended, one.judged, one.end, one.reason)
        for one in outcomes
    )
    found = [[*row, str(times)] for row, times in sorted(counted.items())]
    return [["LAUNCHER", "STRIKE", "SHELL LINE", "LAUNCHER ENDED", "JUDGED", "JOB", "REASON", "TIMES"], *found]


def _ended(attempt: Mapping[str, Any]) -> str:
    end = attempt.get("end", {})
    return f"code {end['code']}" if "code" in end else str(end.get("how", "not seen"))


def finished_ranks(log: Sequence[str]) -> frozenset[str]:
    """What the ranks of its last mpirun have said at their end."""
    begins = max((n for n, line in enumerate(log) if line.startswith("ended with ")), default=-1)
    return frozenset(line for line in log[begins + 1 :] if line.endswith(" is one of 2"))
