"""Specs that can't be, and the field that each is told of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.controller.jobs import Body, container, mpi_job

Change = Callable[[Body], None]

_REPLICAS = "spec.mpiReplicaSpecs"
_LAUNCHER = f"{_REPLICAS}.Launcher"
_WORKER = f"{_REPLICAS}.Worker"


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

# What is wrong, how it came about, the field, and what is said of it.
BAD: list[tuple[str, Change, str, str]] = [
    ("a name with a dot", put("metadata/name", "a.b"), "metadata.name", "lower-case letters"),
    ("a name that begins with a digit", put("metadata/name", "1st"), "metadata.name", "begin with a letter"),
    ("a name too long for pods", put("metadata/name", "a" * 46), "metadata.name", "at most 45"),
    ("no spec", without("spec"), "spec", "is missing"),
    ("a spec that is a text", put("spec", "x"), "spec", "expected an object, got 'x'"),
    ("no replicas at all", without("spec/mpiReplicaSpecs"), _REPLICAS, "is missing"),
    ("no launcher", without(_L), _LAUNCHER, "is missing"),
    ("workers that are a text", put(_W, "two"), _WORKER, "expected an object, got 'two'"),
    ("two launchers", put(f"{_L}/replicas", 2), f"{_LAUNCHER}.replicas", "must be 1, got 2"),
    ("no launcher wanted", put(f"{_L}/replicas", 0), f"{_LAUNCHER}.replicas", "must be at least 1"),
    ("no worker wanted", put(f"{_W}/replicas", 0), f"{_WORKER}.replicas", "must be at least 1"),
    ("workers as a text", put(f"{_W}/replicas", "4x"), f"{_WORKER}.replicas", "a whole number, got '4x'"),
    ("workers as a truth", put(f"{_W}/replicas", value=True), f"{_WORKER}.replicas", "a whole number, got True"),
    ("more workers than there is room for", put(f"{_W}/replicas", 10_001), f"{_WORKER}.replicas", "at most 10000"),
    ("fewer than no slots", put("spec/slotsPerWorker", -1), "spec.slotsPerWorker", "must be at least 0"),
    ("half a slot", put("spec/slotsPerWorker", 0.5), "spec.slotsPerWorker", "a whole number, got 0.5"),
    ("an unknown MPI", put("spec/mpiImplementation", "LAM"), "spec.mpiImplementation", "OpenMPI, Intel, MPICH"),
    (
        "an unknown creation policy",
        put("spec/launcherCreationPolicy", "Never"),
        "spec.launcherCreationPolicy",
        "AtStartup, WaitForWorkersReady",
    ),
    ("an unknown clean-up", put("spec/cleanPodPolicy", "Some"), "spec.cleanPodPolicy", "None, Running, All"),
    (
        "an unknown clean-up in the run policy",
        put("spec/runPolicy/cleanPodPolicy", "Some"),
        "spec.runPolicy.cleanPodPolicy",
        "None, Running, All",
    ),
    (
        "a TTL before the end",
        put("spec/runPolicy/ttlSecondsAfterFinished", -1),
        "spec.runPolicy.ttlSecondsAfterFinished",
        "at least 0",
    ),
    (
        "no time at all",
        put("spec/runPolicy/activeDeadlineSeconds", 0),
        "spec.runPolicy.activeDeadlineSeconds",
        "at least 1",
    ),
    ("less than no retry", put("spec/runPolicy/backoffLimit", -1), "spec.runPolicy.backoffLimit", "at least 0"),
    (
        "suspend as a text",
        put("spec/runPolicy/suspend", "yes"),
        "spec.runPolicy.suspend",
        "true or false, got 'yes'",
    ),
    (
        "a gang of none",
        put("spec/runPolicy/schedulingPolicy/minAvailable", 0),
        "spec.runPolicy.schedulingPolicy.minAvailable",
        "at least 1",
    ),
    (
        "a queue as a number",
        put("spec/runPolicy/schedulingPolicy/queue", 1),
        "spec.runPolicy.schedulingPolicy.queue",
        "expected text",
    ),
    ("a run policy as a list", put("spec/runPolicy", []), "spec.runPolicy", "expected an object, got []"),
    (
        "launcher as worker as a text",
        put("spec/runLauncherAsWorker", "no"),
        "spec.runLauncherAsWorker",
        "true or false",
    ),
    (
        "a main container that isn't there",
        put("spec/mainContainer", "gpu"),
        "spec.mainContainer",
        "no container of the workers",
    ),
    ("elastic with no worker", put("spec/elastic/minReplicas", 0), "spec.elastic.minReplicas", "at least 1"),
    (
        "elastic with less at most than at least",
        put("spec/elastic", {"minReplicas": 3, "maxReplicas": 2}),
        "spec.elastic.maxReplicas",
        "must not be below minReplicas=3",
    ),
    (
        "more workers than elastic allows",
        put("spec/elastic", {"minReplicas": 1, "maxReplicas": 1}),
        f"{_WORKER}.replicas",
        "from 1 to 1 (spec.elastic), got 2",
    ),
    (
        "a launcher that always restarts",
        put(f"{_L}/restartPolicy", "Always"),
        f"{_LAUNCHER}.restartPolicy",
        "Never or OnFailure",
    ),
    (
        "an unknown restart policy",
        put(f"{_W}/restartPolicy", "Soon"),
        f"{_WORKER}.restartPolicy",
        "must be one of",
    ),
    ("no template", without(f"{_L}/template"), f"{_LAUNCHER}.template", "is missing"),
    ("no pod", without(f"{_W}/template/spec"), f"{_WORKER}.template.spec", "is missing"),
    ("no containers", put(f"{_WP}/containers", []), f"{_WORKER}.template.spec.containers", "at least one"),
    (
        "containers as an object",
        put(f"{_WP}/containers", {}),
        f"{_WORKER}.template.spec.containers",
        "expected a list",
    ),
    (
        "a container without a name",
        put(f"{_MAIN}/name", ""),
        f"{_LAUNCHER}.template.spec.containers[0].name",
        "is missing",
    ),
    (
        "a container without an image",
        without(f"{_W}/template/spec/containers/0/image"),
        f"{_WORKER}.template.spec.containers[0].image",
        "is missing",
    ),
    (
        "two containers of one name",
        put(f"{_LP}/containers", [container("mpi"), container("mpi")]),
        f"{_LAUNCHER}.template.spec.containers[1].name",
        "is used twice",
    ),
    (
        "an init container with a name of ours",
        put(f"{_LP}/initContainers", [container("mpirt-wait")]),
        f"{_LAUNCHER}.template.spec.initContainers[0].name",
        "is reserved for mpirt",
    ),
    (
        "a request that is no quantity",
        put(f"{_MAIN}/resources", {"requests": {"cpu": "much"}}),
        f"{_LAUNCHER}.template.spec.containers[0].resources.requests.cpu",
        "expected a quantity such as 2, 500m or 4Gi, got 'much'",
    ),
    (
        "a limit of an init container that is no quantity",
        put(f"{_WP}/initContainers", [{**container("first"), "resources": {"limits": {"cpu": [1]}}}]),
        f"{_WORKER}.template.spec.initContainers[0].resources.limits.cpu",
        "expected a quantity",
    ),
    (
        "an overhead that is no quantity",
        put(f"{_WP}/overhead", {"memory": "1 Gi"}),
        f"{_WORKER}.template.spec.overhead.memory",
        "expected a quantity",
    ),
    (
        "a command as a text",
        put(f"{_MAIN}/command", "mpirun"),
        f"{_LAUNCHER}.template.spec.containers[0].command",
        "expected a list",
    ),
    (
        "an argument as a number",
        put(f"{_MAIN}/args", ["-n", 2]),
        f"{_LAUNCHER}.template.spec.containers[0].args[1]",
        "expected text",
    ),
    (
        "a variable without a name",
        put(f"{_MAIN}/env", [{"value": "1"}]),
        f"{_LAUNCHER}.template.spec.containers[0].env[0].name",
        "is missing",
    ),
    (
        "a volume where the hostfile is",
        put(f"{_MAIN}/volumeMounts", [{"name": "x", "mountPath": "/etc/mpi/"}]),
        f"{_LAUNCHER}.template.spec.containers[0].volumeMounts[0].mountPath",
        "mpirt puts its own files",
    ),
    (
        "a volume with a name of ours",
        put(f"{_WP}/volumes", [{"name": "mpi-job-config"}]),
        f"{_WORKER}.template.spec.volumes[0].name",
        "is reserved for mpirt",
    ),
    (
        "a host network as a text",
        put(f"{_WP}/hostNetwork", "true"),
        f"{_WORKER}.template.spec.hostNetwork",
        "true or false",
    ),
    (
        "an account as a number",
        put(f"{_LP}/serviceAccountName", 7),
        f"{_LAUNCHER}.template.spec.serviceAccountName",
        "expected text",
    ),
    (
        "a label that is a number",
        put(f"{_W}/template/metadata", {"labels": {"tier": 1}}),
        f"{_WORKER}.template.metadata.labels.tier",
        "expected text, got 1",
    ),
    (
        "elastic without workers",
        both(put("spec/elastic", {}), without(_W)),
        "spec.elastic",
        "needs workers",
    ),
    (
        "a main container that a launcher without workers doesn't have",
        both(put("spec/mainContainer", "gpu"), without(_W)),
        "spec.mainContainer",
        "no container of the launcher",
    ),
    (
        "resources that are no quantity",
        put("spec/runPolicy/schedulingPolicy/minResources", {"cpu": "many"}),
        "spec.runPolicy.schedulingPolicy.minResources.cpu",
        "expected a quantity such as 2, 500m or 4Gi, got 'many'",
    ),
    (
        "resources that are a truth",
        put("spec/runPolicy/schedulingPolicy/minResources", {"cpu": True}),
        "spec.runPolicy.schedulingPolicy.minResources.cpu",
        "expected a quantity",
    ),
    (
        "a time-out that is a text",
        put("spec/runPolicy/schedulingPolicy/scheduleTimeoutSeconds", "1m"),
        "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds",
        "a whole number, got '1m'",
    ),
    (
        "a priority class that is a number",
        put("spec/runPolicy/schedulingPolicy/priorityClass", 1000),
        "spec.runPolicy.schedulingPolicy.priorityClass",
        "expected text",
    ),
    (
        "two clean-ups that are lists",
        put("spec/runPolicy/cleanPodPolicy", ["All"]),
        "spec.runPolicy.cleanPodPolicy",
        "expected text",
    ),
    (
        "a launcher that is retried by half",
        put("spec/runPolicy/backoffLimit", 1.5),
        "spec.runPolicy.backoffLimit",
        "a whole number, got 1.5",
    ),
    (
        "a deadline that is longer than any",
        put("spec/runPolicy/activeDeadlineSeconds", 2**31),
        "spec.runPolicy.activeDeadlineSeconds",
        "must be at most",
    ),
    (
        "a sidecar without an image",
        put(f"{_WP}/containers", [container("worker"), {"name": "proxy"}]),
        f"{_WORKER}.template.spec.containers[1].image",
        "is missing",
    ),
    (
        "search domains as a text",
        put(f"{_WP}/dnsConfig", {"searches": "example.com"}),
        f"{_WORKER}.template.spec.dnsConfig.searches",
        "expected a list",
    ),
    (
        "a folder where the runtime is",
        put(f"{_WP}/containers/0/volumeMounts", [{"name": "x", "mountPath": "/opt/mpirt"}]),
        f"{_WORKER}.template.spec.containers[0].volumeMounts[0].mountPath",
        "mpirt puts its own files",
    ),
]


def bad_job(change: Change) -> Body:
    """A job to which that was done."""
    job = mpi_job()
    change(job)
    return job
