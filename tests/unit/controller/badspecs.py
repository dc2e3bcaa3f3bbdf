"""Specs that can't be, and the field that each is told of."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.unit.controller.jobs import Body, container, mpi_job

Change = Callable[[Body], None]

_WORKER = "spec.mpiReplicaSpecs.Worker"


def put(path: str, value: Any) -> Change:
    """A change that puts a value at a path of names and numbers; what is on the way is made."""

    def change(job: Body) -> None:
        *parents, last = [int(part) if part.isdigit() else part for part in path.split("/")]
        place: Any = job
        for part in parents:
            place = place[part] if isinstance(part, int) else place.setdefault(part, {})
        place[last] = value

    return change


def without(path: str) -> Change:
    """A change that takes a field away."""

    def change(job: Body) -> None:
        *parents, last = [int(part) if part.isdigit() else part for part in path.split("/")]
        place: Any = job
        for part in parents:
            place = place[part]
        del place[last]

    return change


def both(first: Change, second: Change) -> Change:
    """A change that is two."""

    def change(job: Body) -> None:
        first(job)
        second(job)

    return change


_L = "spec/mpiReplicaSpecs/Launcher"
_W = "spec/mpiReplicaSpecs/Worker"
_LP = f"{_L}/template/spec"
_WP = f"{_W}/template/spec"
_MAIN = f"{_LP}/containers/0"
_RUN = "spec/runPolicy"
_POLICY = f"{_RUN}/schedulingPolicy"
_GONE = object()


def bad(name: str, path: str, value: object, said: str, *, below: str = "") -> tuple[str, Change, str, str]:
    """What is wrong, how it came about, the field (the one that was put, or one below it), and what is said."""
    change = without(path) if value is _GONE else put(path, value)
    return name, change, re.sub(r"\.(\d+)", r"[\1]", path.replace("/", ".")) + below, said


BAD = [
    bad("a name with a dot", "metadata/name", "a.b", "lower-case letters"),
    bad("a name that begins with a digit", "metadata/name", "1st", "begin with a letter"),
    bad("a name too long for pods", "metadata/name", "a" * 46, "at most 45"),
    bad("no spec", "spec", _GONE, "is missing"),
    bad("a spec that is a text", "spec", "x", "expected an object, got 'x'"),
    bad("no replicas at all", "spec/mpiReplicaSpecs", _GONE, "is missing"),
    bad("no launcher", _L, _GONE, "is missing"),
    bad("workers that are a text", _W, "two", "expected an object, got 'two'"),
    bad("two launchers", f"{_L}/replicas", 2, "must be 1, got 2"),
    bad("no launcher wanted", f"{_L}/replicas", 0, "must be at least 1"),
    bad("no worker wanted", f"{_W}/replicas", 0, "must be at least 1"),
    bad("workers as a text", f"{_W}/replicas", "4x", "a whole number, got '4x'"),
    bad("workers as a truth", f"{_W}/replicas", value=True, said="a whole number, got True"),
    bad("more workers than there is room for", f"{_W}/replicas", 10_001, "at most 10000"),
    bad("fewer than no slots", "spec/slotsPerWorker", -1, "must be at least 0"),
    bad("half a slot", "spec/slotsPerWorker", 0.5, "a whole number, got 0.5"),
    bad("an unknown MPI", "spec/mpiImplementation", "LAM", "OpenMPI, Intel, MPICH"),
    bad("an unknown creation policy", "spec/launcherCreationPolicy", "Never", "AtStartup, WaitForWorkersReady"),
    bad("an unknown clean-up", "spec/cleanPodPolicy", "Some", "None, Running, All"),
    bad("an unknown clean-up in the run policy", f"{_RUN}/cleanPodPolicy", "Some", "None, Running, All"),
    bad("a TTL before the end", f"{_RUN}/ttlSecondsAfterFinished", -1, "at least 0"),
    bad("no time at all", f"{_RUN}/activeDeadlineSeconds", 0, "at least 1"),
    bad("less than no retry", f"{_RUN}/backoffLimit", -1, "at least 0"),
    bad("suspend as a text", f"{_RUN}/suspend", "yes", "true or false, got 'yes'"),
    bad("a gang of none", f"{_POLICY}/minAvailable", 0, "at least 1"),
    bad("a queue as a number", f"{_POLICY}/queue", 1, "expected text"),
    bad("a run policy as a list", "spec/runPolicy", [], "expected an object, got []"),
    bad("launcher as worker as a text", "spec/runLauncherAsWorker", "no", "true or false"),
    bad("a main container that isn't there", "spec/mainContainer", "gpu", "no container of the workers"),
    bad("elastic with no worker", "spec/elastic/minReplicas", 0, "at least 1"),
    bad(
        "elastic with less at most than at least",
        "spec/elastic",
        {"minReplicas": 3, "maxReplicas": 2},
        "must not be below minReplicas=3",
        below=".maxReplicas",
    ),
    (
        "more workers than elastic allows",
        put("spec/elastic", {"minReplicas": 1, "maxReplicas": 1}),
        f"{_WORKER}.replicas",
        "from 1 to 1 (spec.elastic), got 2",
    ),
    bad("a launcher that always restarts", f"{_L}/restartPolicy", "Always", "Never or OnFailure"),
    bad("an unknown restart policy", f"{_W}/restartPolicy", "Soon", "must be one of"),
    bad("no template", f"{_L}/template", _GONE, "is missing"),
    bad("no pod", f"{_W}/template/spec", _GONE, "is missing"),
    bad("no containers", f"{_WP}/containers", [], "at least one"),
    bad("containers as an object", f"{_WP}/containers", {}, "expected a list"),
    bad("a container without a name", f"{_MAIN}/name", "", "is missing"),
    bad("a container without an image", f"{_W}/template/spec/containers/0/image", _GONE, "is missing"),
    bad(
        "two containers of one name",
        f"{_LP}/containers",
        [container("mpi"), container("mpi")],
        "is used twice",
        below="[1].name",
    ),
    bad(
        "an init container with a name of ours",
        f"{_LP}/initContainers",
        [container("mpirt-wait")],
        "is reserved for mpirt",
        below="[0].name",
    ),
    bad(
        "a request that is no quantity",
        f"{_MAIN}/resources",
        {"requests": {"cpu": "much"}},
        "expected a quantity such as 2, 500m or 4Gi, got 'much'",
        below=".requests.cpu",
    ),
    bad(
        "a limit of an init container that is no quantity",
        f"{_WP}/initContainers",
        [{**container("first"), "resources": {"limits": {"cpu": [1]}}}],
        "expected a quantity",
        below="[0].resources.limits.cpu",
    ),
    bad(
        "an overhead that is no quantity",
        f"{_WP}/overhead",
        {"memory": "1 Gi"},
        "expected a quantity",
        below=".memory",
    ),
    bad("a command as a text", f"{_MAIN}/command", "mpirun", "expected a list"),
    bad("an argument as a number", f"{_MAIN}/args", ["-n", 2], "expected text", below="[1]"),
    bad("a variable without a name", f"{_MAIN}/env", [{"value": "1"}], "is missing", below="[0].name"),
    bad(
        "a volume where the hostfile is",
        f"{_MAIN}/volumeMounts",
        [{"name": "x", "mountPath": "/etc/mpi/"}],
        "mpirt puts its own files",
        below="[0].mountPath",
    ),
    bad(
        "a volume with a name of ours",
        f"{_WP}/volumes",
        [{"name": "mpi-job-config"}],
        "is reserved for mpirt",
        below="[0].name",
    ),
    bad("a host network as a text", f"{_WP}/hostNetwork", "true", "true or false"),
    bad("an account as a number", f"{_LP}/serviceAccountName", 7, "expected text"),
    bad(
        "a label that is a number",
        f"{_W}/template/metadata",
        {"labels": {"tier": 1}},
        "expected text, got 1",
        below=".labels.tier",
    ),
    ("elastic without workers", both(put("spec/elastic", {}), without(_W)), "spec.elastic", "needs workers"),
    (
        "a main container that a launcher without workers doesn't have",
        both(put("spec/mainContainer", "gpu"), without(_W)),
        "spec.mainContainer",
        "no container of the launcher",
    ),
    bad(
        "resources that are no quantity",
        f"{_POLICY}/minResources",
        {"cpu": "many"},
        "expected a quantity such as 2, 500m or 4Gi, got 'many'",
        below=".cpu",
    ),
    bad(
        "resources that are a truth", f"{_POLICY}/minResources", {"cpu": True}, "expected a quantity", below=".cpu"
    ),
    bad("a time-out that is a text", f"{_POLICY}/scheduleTimeoutSeconds", "1m", "a whole number, got '1m'"),
    bad("a priority class that is a number", f"{_POLICY}/priorityClass", 1000, "expected text"),
    bad("two clean-ups that are lists", f"{_RUN}/cleanPodPolicy", ["All"], "expected text"),
    bad("a launcher that is retried by half", f"{_RUN}/backoffLimit", 1.5, "a whole number, got 1.5"),
    bad("a deadline that is longer than any", f"{_RUN}/activeDeadlineSeconds", 2**31, "must be at most"),
    bad(
        "a sidecar without an image",
        f"{_WP}/containers",
        [container("worker"), {"name": "proxy"}],
        "is missing",
        below="[1].image",
    ),
    bad(
        "search domains as a text",
        f"{_WP}/dnsConfig",
        {"searches": "example.com"},
        "expected a list",
        below=".searches",
    ),
    bad(
        "a folder where the runtime is",
        f"{_WP}/containers/0/volumeMounts",
        [{"name": "x", "mountPath": "/opt/mpirt"}],
        "mpirt puts its own files",
        below="[0].mountPath",
    ),
]


def bad_job(change: Change) -> Body:
    """A job to which that was done."""
    job = mpi_job()
    change(job)
    return job
