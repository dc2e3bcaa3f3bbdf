"""
TrainingJobs whose controller is killed at a chosen write of a change of their workers, and one left in peace.

Owns: the changes, the writes that each of them takes, and the life of a job that is changed. The kill is that of
crashes.py: the API server has carried the write out, and nobody knows.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace

from mpirt.controller.model.objectnames import NEEDED_KEY
from tests.api import trainings
from tests.api.apiproxy import Where, Write
from tests.api.beds import Bed
from tests.api.controllers import job_name
from tests.api.leadership import made_twice
from tests.api.likeness import lasting_difference, state_when
from tests.api.recorder import Recorder, Told, is_worker
from tests.api.states import State, made_again, state
from tests.api.trainings import Body, Training
from tests.plane import nodes

# Several times what it takes until a job runs, and until the state in peace is known.
_COMES_WITHIN = 180.0
_WORKERS = 3
_DIGESTS = re.compile(r"(\"mpirt\.dev/(?:workers|template)\": )\"[0-9a-f]{16}\"")
# The label of the nodes of one job alone.
_OF_JOB = "mpirt-test/job"


@dataclass(frozen=True)
class Change:
    """A change of the workers 0, 1 and 2 of a job that runs."""

    ask: Callable[[Training], object]
    hosts: tuple[int, ...]
    """The workers in the end."""
    replicas: int
    highest: int
    """The highest number that is ever used."""
    writes: tuple[str, ...]
    """All writes that it takes, in their order."""
    ordered: bool = True
    """Whether they come in this order, and no others of the ConfigMap in between."""
    is_killed: bool = True
    """Whether a controller is killed at each of them."""
    least: int = 1
    """The job's minReplicas."""
    on_one_node: bool = False
    """Whether all workers are on one node at first, which no other pods are on."""


SCALE_OUT = Change(
    ask=lambda job: job.scale_out(f"{job.name}-asks", 2),
    hosts=(0, 1, 2, 3, 4),
    replicas=5,
    highest=4,
    writes=(
        "PATCH scaleouts",
        "POST events ScalingStart of the job",
        "PATCH trainingjobs/status Scaling, pods to create",
        "PATCH roles",
        "POST pods 3",
        "POST pods 4",
        "PATCH scaleouts/status Scaling",
        "PATCH trainingjobs/status Scaling",
        "PATCH trainingjobs",
        "POST events ScalingOutSucceeded of the scaler",
        "PATCH scaleouts/status ScaleSucceeded",
        "POST events ScalingOutSucceeded of the job",
        "PATCH trainingjobs/status Running",
        "PATCH configmaps hosts 0 1 2 3 4 of 5",
        "PATCH pods 3",
        "PATCH pods 4",
        "PATCH pods launcher",
    ),
)
SCALE_IN = Change(
    ask=lambda job: job.scale_in(f"{job.name}-asks", toDelete={"podNames": [job.worker(1)]}),
    hosts=(0, 2),
    replicas=2,
    highest=2,
    writes=(
        "PATCH scaleins",
        "POST events ScalingStart of the job",
        "PATCH trainingjobs/status Scaling",
        "PATCH configmaps hosts 0 2 of 3",
        "PATCH pods 1",
        "PATCH scaleins/status Scaling",
        "PATCH pods launcher",
        "PATCH trainingjobs/status Scaling, committed",
        "DELETE pods 1",
        "PATCH trainingjobs",
        "POST events ScalingInSucceeded of the scaler",
        "PATCH scaleins/status ScaleSucceeded",
        "POST events ScalingInSucceeded of the job",
        "PATCH trainingjobs/status Running",
        "PATCH configmaps hosts 0 2 of 2",
        "PATCH roles",
    ),
)
SCALE_DOWN = Change(
    ask=lambda job: job.scale(1),
    hosts=(0,),
    replicas=1,
    highest=2,
    writes=(
        "POST events ScalingStart of the job",
        "PATCH trainingjobs/status Scaling",
        "PATCH configmaps hosts 0 of 3",
        "PATCH pods 1",
        "PATCH pods 2",
        "PATCH pods launcher",
        "PATCH trainingjobs/status Scaling, committed",
        "DELETE pods 1",
        "DELETE pods 2",
        "POST events ScalingInSucceeded of the job",
        "PATCH trainingjobs/status Running",
        "PATCH configmaps hosts 0 of 1",
        "PATCH roles",
    ),
)


def _node_goes(job: Training) -> None:
    """The node of all its workers is about to go, and there is another one."""
    kubectl = job.namespace.ground.kubectl
    nodes.add(kubectl, [staying(job.name)], alone=True, labels={_OF_JOB: job.name})
    kubectl("taint", "node", going(job.name), "aws-node-termination-handler/spot-itn=soon:NoSchedule")


def going(name: str) -> str:
    """The node that the workers of that job leave."""
    return f"{name}-goes"


def staying(name: str) -> str:
    """The node that they leave it for."""
    return f"{name}-stays"


DRAIN = Change(
    ask=_node_goes,
    hosts=(3, 4, 5),
    replicas=3,
    highest=5,
    on_one_node=True,
    # Which of the new workers becomes Ready first is different each time.
    ordered=False,
    writes=(
        "POST events NodeTaint of the job",
        "PATCH trainingjobs/status Running, pods to create",
        "PATCH roles",
        "POST pods 3",
        "POST pods 4",
        "POST pods 5",
        "PATCH pods launcher",
        "PATCH trainingjobs/status Running",
        "PATCH pods 0",
        "PATCH pods 1",
        "PATCH pods 2",
        "PATCH configmaps hosts 3 4 5 of 3",
        "DELETE pods 0",
        "DELETE pods 1",
        "DELETE pods 2",
    ),
)
# Without minReplicas the same writes come in an order that is easier to resume.
DRAIN_OF_NEEDED, DRAIN = replace(DRAIN, least=3), replace(DRAIN, is_killed=False)
CHANGES = {
    "ScaleOut": SCALE_OUT,
    "ScaleIn by name": SCALE_IN,
    "kubectl scale": SCALE_DOWN,
    "a node goes": DRAIN,
    "a node of needed workers goes": DRAIN_OF_NEEDED,
}


def words(write: Write) -> str:
    """The write as it stands in a change."""
    match write.kind:
        case "events":
            is_of_job = write.content["involvedObject"]["kind"] == "TrainingJob"
            return f"{write} {write.content['reason']} of the {'job' if is_of_job else 'scaler'}"
        case "pods":
            return f"{write} {'launcher' if '-launcher-' in write.name else write.name.rpartition('-')[2]}"
        case "configmaps" if write.method == "PATCH":
            data = write.content[-1]["value"]
            hosts = [line.partition(":")[0].rpartition("-")[2] for line in data["hostfile"].split()]
            return f"{write} hosts {' '.join(hosts)} of {data[NEEDED_KEY]}"
        case "trainingjobs/status":
            return f"{write} {_step(write.content[-1]['value'])}"
        case "scaleins/status" | "scaleouts/status":
            return f"{write} {write.content[-1]['value']['phase']}"
        case _:
            return str(write)


def _step(status: Body) -> str:
    scaling = status["scaling"]
    if "pending" in scaling:
        return f"{status['phase']}, pods to create"
    is_committed = scaling.get("change", {}).get("committed", False)
    return f"{status['phase']}, committed" if is_committed else str(status["phase"])


@dataclass(repr=False)
class Course:
    """One job's change, and what is to be said of it."""

    bed: Bed
    change: Change
    job: Training
    recorder: Recorder
    begun: int = 0
    """How many writes there had been for the job when the change was asked for."""
    difference: str = ""
    """How it differed in the end from the one in peace."""

    def writes(self) -> list[str]:
        """What was written for the change, in the words of it."""
        return list(dict.fromkeys(words(write) for write in self._writes()[self.begun :] if write.is_good))

    def expected(self) -> list[str]:
        """What was written for the change, without the lists of hosts in between that differ each time."""
        if self.change.ordered:
            return self.writes()
        return sorted(one for one in self.writes() if one in self.change.writes or "configmaps" not in one)

    def made_twice(self) -> list[str]:
        """Objects that the API server has made more than once, and pods that Kubernetes has."""
        return [*made_twice(self._writes()), *made_again(self.bed.namespace, self.job.name)]

    def pods(self) -> dict[str, int]:
        """How many pods of each of its workers there ever were."""
        workers = {(told.name, told.uid) for told in self._told() if told.kind == "Pod" and is_worker(told.body)}
        return Counter(name for name, _ in workers)

    def wanted(self) -> list[tuple[str, ...]]:
        """The different sets of workers that it has wanted, one after the other."""
        told = [told.body.get("status", {}) for told in self._told() if told.kind == "TrainingJob"]
        sets = [tuple(status["targetWorkers"]) for status in told if "targetWorkers" in status]
        return list(dict.fromkeys(sets))

    def scalers(self) -> list[Body]:
        """What asked for the change, if that is an object."""
        return [*self.recorder.all_of("ScaleIn", self.job.name), *self.recorder.all_of("ScaleOut", self.job.name)]

    def live(self, peace: Future[State], target: str) -> None:
        """See the change through; without a target, as the one that others are compared with."""
        self._rest(*range(_WORKERS))
        self.begun = len(self._writes())
        if not target:
            self.change.ask(self.job)
            self._rest(*self.change.hosts)
            peace.set_result(state_when(self._state, self._is_all_written, "the last writes of the change"))
            return
        hold = self.bed.proxy.hold(Where.AFTER, lambda write: self._is(write, target))
        self.change.ask(self.job)
        self.bed.kill_at(hold, within=_COMES_WITHIN)
        self._rest(*self.change.hosts)
        self.difference = lasting_difference(peace.result(_COMES_WITHIN), self._state)

    def remove_nodes(self) -> None:
        """Remove the nodes that were of this job alone."""
        if self.change.on_one_node:
            for node in (going(self.job.name), staying(self.job.name)):
                nodes.remove(self.bed.namespace.ground.kubectl, node)

    def _rest(self, *numbers: int) -> None:
        """Wait until the job has these workers, nothing is under way, and all that is said."""
        names = [self.job.worker(number) for number in numbers]

        def is_at_rest() -> bool:
            return _is_at_rest((self.recorder.now("TrainingJob", self.job.name) or {}).get("status", {}), names)

        self.recorder.wait(
            self.job.name, is_at_rest, within=_COMES_WITHIN, what=f"workers {numbers}", instead=self.job.around
        )

    def _is(self, write: Write, target: str) -> bool:
        return self.job.name in write.name and words(write) == target

    def _is_all_written(self, _: State) -> bool:
        return len(self.writes()) >= len(self.change.writes)

    def _state(self) -> State:
        found = tuple(map(_without_course, state(self.bed.namespace, self.job.name)))
        # The workers' template names the nodes of the job.
        return tuple(_DIGESTS.sub(r'\1"DIGEST"', line) for line in found) if self.change.on_one_node else found

    def _told(self) -> list[Told]:
        return [told for told in self.recorder.told() if self.job.name in told.name]

    def _writes(self) -> list[Write]:
        return [write for write in self.bed.proxy.writes() if self.job.name in write.name]


def _is_at_rest(status: Body, names: list[str]) -> bool:
    workers = len(names)
    said = [each["message"] for each in status.get("conditions", ()) if each["type"] == "Running"]
    return (
        status.get("phase") == "Running"
        and not {"change", "drains"} & {*status["scaling"]}
        and status["targetWorkers"] == names
        and status["replicaStatuses"]["Worker"]["active"] == workers
        and f"{workers} of {workers} workers are Ready" in said[0]
    )


def _without_course(line: str) -> str:
    """What is said of a scaler that is under way is left out: it may be over when the next controller sees it."""
    fact = json.loads(line)
    if fact["kind"] in trainings.PLURALS:
        status = fact["status"]
        status["conditions"] = [each for each in status["conditions"] if each["type"] != "Scaling"]
        status.pop("startTime", None)
    return json.dumps(fact, sort_keys=True)


def live(bed: Bed, recorder: Recorder, change: Change, peace: Future[State], target: str) -> Course:
    """The life of a job that runs and whose workers change; without a target, in peace."""
    name = job_name("scale")
    placed = {}
    if change.on_one_node:
        nodes.add(bed.namespace.ground.kubectl, [going(name)], alone=True, labels={_OF_JOB: name})
        placed = {"worker": {"nodeSelector": {_OF_JOB: name}, **nodes.TOLERATED}}
    job = trainings.submit(bed.namespace, name, replicas=_WORKERS, least=change.least, restart="Always", **placed)
    course = Course(bed, change, job, recorder)
    try:
        course.live(peace, target)
    except BaseException as error:
        if not target and not peace.done():
            # Those that wait for it must know that there will be none.
            peace.set_exception(error)
        raise
    return course
