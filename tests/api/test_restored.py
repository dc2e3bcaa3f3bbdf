"""
What is deleted or edited by hand comes back as the job says, within five seconds.

The time is the controller's: from the moment at which the API server tells of the change to the one at which it
tells that the object is as it was. What Kubernetes needs for pods after that is not counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from testbed.kube.kubectl import is_ready
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, submit
from testbed.plane.stages import ENDS, GRACE, NEVER, STOPS_AFTER
from tests.api.controllers import Controller, job_name
from tests.promises import promise
from tests.support.stories import pods_of
from tests.support.times import Times
from tests.support.watching import State, Watch, watch

# As promised. On an idle machine it takes a tenth of a second.
WITHIN = 5.0
# For kubectl, on a machine that is busy.
TOLD_WITHIN = 30.0
WHOLE_WITHIN = 120.0
SHORT_GRACE = 4
# Longer than the pauses between Kubernetes' first attempts to make a pod of a name that another still has.
LONG_GRACE = 12
# Runs until it is deleted, and then doesn't end as soon as it is asked to.
STUBBORN = {ENDS: NEVER, STOPS_AFTER: GRACE}
DONE = ("true",)

_LABELS = "/metadata/labels"
_DIGEST = "/metadata/annotations/mpirt.dev~1template"
_JOB_LABEL = "training.kubeflow.org/job-name"


@dataclass(frozen=True)
class Edit:
    """An edit by hand, and a pointer to the part of the object that it changes."""

    name: str
    what: str
    path: str
    words: tuple[str, ...]


def patched(name: str, what: str, path: str, value: object) -> Edit:
    change = [{"op": "add", "path": path, "value": value}]
    return Edit(name, what, path, ("patch", "--type=json", f"--patch={json.dumps(change)}"))


def labelled(name: str, what: str, word: str) -> Edit:
    return Edit(name, what, _LABELS, ("label", "--overwrite", word))


OBJECTS = (
    "configmap/-config",
    "serviceaccount/-launcher",
    "role/-launcher",
    "rolebinding/-launcher",
    "service/",
    "statefulset/-worker",
    "job/-launcher",
)
SLEEP = {"name": "more", "image": "none", "command": ["true"]}
_NO_KEEPER = json.dumps([{"op": "remove", "path": "/binaryData"}])
EDITS = (
    patched("another hostfile", "configmap/-config", "/data/hostfile", "elsewhere"),
    patched("a file more", "configmap/-config", "/data/more", "x"),
    patched("another keeper", "configmap/-config", "/binaryData/keeper-1-amd64", "AAAA"),
    Edit("no keeper", "configmap/-config", "/binaryData", ("patch", "--type=json", f"--patch={_NO_KEEPER}")),
    labelled("no label of ours", "configmap/-config", "training.kubeflow.org/operator-name-"),
    labelled("a label gone", "serviceaccount/-launcher", "app-"),
    labelled("another job's label", "serviceaccount/-launcher", f"{_JOB_LABEL}=other"),
    patched("no rule", "role/-launcher", "/rules", []),
    patched("nobody bound", "rolebinding/-launcher", "/subjects", []),
    patched("a port", "service/", "/spec/ports", [{"port": 22}]),
    patched("other pods", "service/", "/spec/selector", {"app": "another"}),
    labelled("another job's label", "service/", f"{_JOB_LABEL}=other"),
    patched("a container more", "statefulset/-worker", "/spec/template/spec/containers/-", SLEEP),
    Edit("scaled", "statefulset/-worker", "/spec/replicas", ("scale", "--replicas=1")),
    patched("workers that roll no more", "statefulset/-worker", "/spec/updateStrategy", {"type": "OnDelete"}),
    Edit("no digest", "statefulset/-worker", _DIGEST, ("annotate", "mpirt.dev/template-")),
    patched("other ordinals", "statefulset/-worker", "/spec/ordinals", {"start": 5}),
    Edit("no digest", "job/-launcher", _DIGEST, ("annotate", "mpirt.dev/template-")),
    patched("retries of its own", "job/-launcher", "/spec/backoffLimit", 6),
    patched("a deadline", "job/-launcher", "/spec/activeDeadlineSeconds", 3600),
    labelled("a label gone", "job/-launcher", "app-"),
    patched("no pod", "job/-launcher", "/spec/parallelism", 0),
)  # fmt: skip


@pytest.fixture(scope="module")
def running(controller: Controller) -> Iterator[MpiJob]:
    """A job whose launcher goes on for as long as the tests need."""
    namespace = controller.namespace
    job = submit(
        namespace,
        job_name("heal"),
        "busybox",
        DONE,
        launcher={"terminationGracePeriodSeconds": SHORT_GRACE},
        annotations={"Launcher": STUBBORN},
    )
    job.wait_for("Running")
    yield job
    namespace.kubectl("delete", "mpijobs.kubeflow.org", job.name, "--wait=false")


@pytest.fixture
def whole(running: MpiJob) -> MpiJob:
    """The same, when all workers are Ready and the launcher runs: what the test before did has healed."""
    until(lambda: is_whole(running), within=WHOLE_WITHIN, what="a launcher that runs, and all workers Ready")
    return running


@promise("Objects of a job that are deleted or edited by hand are as before within 5 s.", of="MPIJob")
@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: f"{edit.what.partition('/')[0]}: {edit.name}")
def test_an_edited_object_is_restored(whole: MpiJob, times: Times, edit: Edit) -> None:
    kind, name = named(whole, edit.what)
    with watch(whole.namespace, kind, name) as watching:
        before = field(watching.states[0], edit.path)
        whole.namespace.kubectl(edit.words[0], kind, name, *edit.words[1:])
        edited = watching.wait(
            lambda state: field(state, edit.path) != before, within=TOLD_WITHIN, what="the edit to be told"
        )
        restored = watching.wait(
            lambda state: field(state, edit.path) == before,
            after=edited.at,
            within=TOLD_WITHIN,
            what=f"{edit.path} as it was",
        )

    times.add(f"{kind}: {edit.name}", restored.at - edited.at)
    assert restored.uid == edited.uid
    assert edited.moment.until(restored.moment) < WITHIN


@promise("Objects of a job that are deleted or edited by hand are as before within 5 s.", of="MPIJob")
@pytest.mark.parametrize("what", OBJECTS, ids=lambda what: what.partition("/")[0])
def test_a_deleted_object_is_created_again(whole: MpiJob, times: Times, what: str) -> None:
    kind, name = named(whole, what)
    with watch(whole.namespace, kind, name) as watching:
        before = watching.states[-1]
        whole.namespace.kubectl("delete", kind, name, "--wait=false")
        deleted = watching.wait(lambda state: state.deleted, within=TOLD_WITHIN, what="the deletion to be told")
        back = watching.wait(
            lambda state: not state.deleted and state.uid != before.uid,
            within=TOLD_WITHIN,
            what=f"another {kind}",
        )

    times.add(f"{kind}: deleted", back.at - deleted.at)
    assert deleted.moment.until(back.moment) < WITHIN
    assert essence(back.body) == essence(before.body)


@promise("Two launchers of a job never run at the same time.", of="MPIJob")
def test_a_launcher_job_comes_back_when_the_pod_of_the_one_before_is_gone(whole: MpiJob) -> None:
    [pod] = [pod for pod in whole.pods("launcher") if "deletionTimestamp" not in pod["metadata"]]
    kind, name = named(whole, "job/-launcher")
    with (
        watch(whole.namespace, kind, name) as launcher,
        watch(whole.namespace, "pod", pod["metadata"]["name"]) as old,
    ):
        uid = launcher.states[-1].uid
        whole.namespace.kubectl("delete", kind, name, "--wait=false")
        back = launcher.wait(
            lambda state: state.uid != uid, within=TOLD_WITHIN + SHORT_GRACE, what="another launcher Job"
        )
        over = old.wait(is_over, within=TOLD_WITHIN, what="the end of the pod before")

    assert back.version > over.version


@promise("Two launchers of a job never run at the same time.", of="MPIJob")
@pytest.mark.one_in(3)
def test_a_launcher_starts_when_the_one_before_it_has_ended(whole: MpiJob) -> None:
    """Whoever replaces the pod, and however long that one takes to end."""
    [old] = [pod["metadata"]["uid"] for pod in whole.pods("launcher") if not is_ended(pod)]
    with pods_of(whole, "launcher") as pods:
        [name] = {state.body["metadata"]["name"] for state in pods.states if state.uid == old}
        whole.namespace.kubectl("delete", "pod", name, "--wait=false")
        over = pods.wait(
            lambda state: state.uid == old and is_over(state), within=WHOLE_WITHIN, what=f"the end of {name}"
        )
        started = pods.wait(
            lambda state: state.uid != old and state.body["status"]["phase"] == "Running",
            within=WHOLE_WITHIN,
            what="another launcher that runs",
        )

    assert started.version > over.version


@promise("Deleted workers are recreated within 5 s after their previous pods are gone.", of="MPIJob")
def test_workers_come_back_as_soon_as_the_ones_before_them_are_gone(controller: Controller, times: Times) -> None:
    """Kubernetes alone would try again ever more seldom: after minutes, in the end."""
    namespace = controller.namespace
    job = submit(
        namespace,
        job_name("slow"),
        "busybox",
        DONE,
        worker={"terminationGracePeriodSeconds": LONG_GRACE},
        launcher={"terminationGracePeriodSeconds": SHORT_GRACE},
        annotations={"Launcher": STUBBORN, "Worker": STUBBORN},
    )
    job.wait_for("Running")
    before = {pod["metadata"]["uid"] for pod in job.pods("worker")}
    with pods_of(job, "worker") as pods:
        namespace.kubectl("delete", *named(job, "statefulset/-worker"), "--wait=false")
        gone = [wait_for_end(pods, uid) for uid in before]
        back = [wait_for_successor(pods, f"{job.name}-worker-{n}", before) for n in (0, 1)]
    namespace.kubectl("delete", "mpijobs.kubeflow.org", job.name, "--wait=false")

    last_gone, last_back = (
        max((state.moment for state in states), key=lambda moment: moment.time) for states in (gone, back)
    )
    seconds = last_gone.until(last_back)
    times.add("workers: made, after the end of those before", seconds)
    assert seconds < WITHIN


def wait_for_end(pods: Watch, uid: str) -> State:
    return pods.wait(
        lambda state: state.deleted and state.uid == uid, within=WHOLE_WITHIN, what=f"the end of {uid}"
    )


def wait_for_successor(pods: Watch, name: str, before: set[str]) -> State:
    return pods.wait(
        lambda state: is_named(state, name) and state.uid not in before,
        within=WHOLE_WITHIN,
        what=f"another {name}",
    )


def is_named(state: State, name: str) -> bool:
    return bool(state.body["metadata"]["name"] == name)


def is_over(pod: State) -> bool:
    return pod.deleted or is_ended(pod.body)


def is_ended(pod: dict[str, Any]) -> bool:
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def named(job: MpiJob, what: str) -> tuple[str, str]:
    """Kind and name of an object of the job."""
    kind, _, suffix = what.partition("/")
    return kind, job.name + suffix


def is_whole(job: MpiJob) -> bool:
    workers = job.namespace.kubectl("get", f"statefulset/{job.name}-worker", "--output=json", check=False).stdout
    found = json.loads(workers or "{}")
    if not found or found["metadata"]["generation"] != found["status"].get("observedGeneration"):
        return False
    is_there = found["status"].get("readyReplicas") == found["status"].get("updatedReplicas") == 2
    launchers = [pod for pod in job.pods("launcher") if not is_ended(pod)]
    return is_there and len(launchers) == 1 and is_ready(launchers[0]) and job.holds("Running")


def field(state: State, path: str) -> Any:
    """What stands at a path; of a path to the end of a list the list."""
    found: Any = state.body
    for word in path.removesuffix("/-").split("/")[1:]:
        found = found.get(word.replace("~1", "/")) if isinstance(found, dict) else None
    return found


def essence(body: dict[str, Any]) -> dict[str, Any]:
    """Of an object what the controller writes into it, less what is told apart by a uid."""
    kept: dict[str, Any] = {name: body[name] for name in ("data", "rules", "subjects", "roleRef") if name in body}
    owners = body["metadata"]["ownerReferences"]
    return {**kept, "labels": body["metadata"]["labels"], "owners": owners}
