"""
All there is of a job in a cluster, without what must differ from one job to another, and the comparison of two.

Two jobs of the same spec that have come as far have equal states, whatever names, times, nodes and addresses they
were given. Owns too: how long a job that was disturbed may take to come to the state of one that was not.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from testbed.ground import Namespace
from testbed.kube.errors import ClusterError
from testbed.kube.kubectl import is_ready
from testbed.kube.wait import until

Body = dict[str, Any]
State = tuple[str, ...]
"""A line for each fact."""

_OBJECTS = (
    "configmaps,serviceaccounts,secrets,roles,rolebindings,services,statefulsets,controllerrevisions,jobs,pods,"
    "mpijobs.kubeflow.org,trainingjobs.kai.alibabacloud.com,scaleins.kai.alibabacloud.com,"
    "scaleouts.kai.alibabacloud.com"
)
# Of what Kubernetes tells: the making and ending of pods, which tells a second one from the first. What nodes tell
# comes late, and not always where the API server was away: see made_again().
_TOLD = frozenset({"SuccessfulCreate", "SuccessfulDelete", "Completed"})
_OWN = "mpirt-controller"
# It writes to a pod only when no node takes it: so it is for a moment after the API server was away.
_AT_TIMES = "kube-scheduler"
# An event is of its moment, and in that one, too, workers are not Ready.
_READY = re.compile(r"\b\d+ of (\d+) workers are Ready")
_OF_WORKERS = ("StatefulSet", "ControllerRevision")
_WORKER = "JOB-worker-"

_LEFT_OUT = frozenset({"resourceVersion", "selfLink", "managedFields", "controller.kubernetes.io/hash"})
_DIFFERS = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    # Of a list of names, which all have the job's.
    (re.compile(r"(\"mpirt\.dev/hosts\": )\"[0-9a-f]{16}\""), r'\1"DIGEST"'),
    # Of the workers' containers, behind their number.
    (re.compile(r"(\"workers\": \"\d+-)[0-9a-f]{16}\""), r'\1DIGEST"'),
    (re.compile(r"containerd://[0-9a-f]{64}"), "CONTAINER"),
    # What a node has under an image's name, which another test may have loaded meanwhile.
    (re.compile(r"\"docker\.io/[^\"]+\"|\"sha256:[0-9a-f]{64}\""), '"IMAGE"'),
    (re.compile(r"\b10\.\d+\.\d+\.\d+\b"), "ADDRESS"),
    (re.compile(r"\bnode-\d+\b"), "NODE"),
    (re.compile(r"\b(JOB-launcher-token|JOB-launcher|kube-api-access)-[a-z0-9]{5}\b"), r"\1-SUFFIX"),
    # A number of 32 bits in letters and digits of its own: mostly ten of them, at times fewer.
    (re.compile(r"\bJOB-worker-[4-9bcdf]{5,10}\b"), "JOB-worker-REVISION"),
)


def state(namespace: Namespace, name: str) -> State:
    """The state of the job of that name, which is part of no other name."""
    found: list[Body] = namespace.kubectl.get(f"{_OBJECTS},events")
    told = [_event(item) for item in found if item["kind"] == "Event" and _is_worth_it(item, name)]
    objects = [_object(item) for item in found if item["kind"] != "Event" and name in item["metadata"]["name"]]
    lines = (line.replace(namespace.name, "NAMESPACE").replace(name, "JOB") for line in [*objects, *told])
    return tuple(sorted(map(_without_differences, lines)))


def made_again(namespace: Namespace, name: str) -> list[str]:
    """Pods of that job that were made more than once, by what Kubernetes tells of it."""
    told = namespace.kubectl.get("events", "--field-selector=reason=SuccessfulCreate")
    counts: Counter[str] = Counter()
    for event in told:
        # Each attempt of a launcher has a pod with a name of its own.
        words = re.sub(r"-launcher-[a-z0-9]{5}$", "-launcher", event["message"])
        counts[words] += event.get("count") or 1
    return [what for what, count in counts.items() if name in what and count > 1]


def as_far_as_told(wanted: State, found: State) -> State:
    """
    What is wanted, without what Kubernetes has not told of it.

    Kubernetes doesn't tell everything where the API server was away: what it had to say just then may be lost.
    """
    untold = Counter(wanted) - Counter(found)
    return tuple(sorted((Counter(wanted) - Counter(filter(_is_kubernetes_word, untold.elements()))).elements()))


def difference(before: State, after: State) -> str:
    """What is in one of two states only, in words; empty if they are equal."""
    lines = difflib.unified_diff(_unfolded(before), _unfolded(after), "undisturbed", "disturbed", lineterm="", n=3)
    return "\n".join(lines)


def is_settled(state: State) -> bool:
    """
    Whether all of a job that runs is as it will stay, by everybody's word.

    Where the API server was away, pods may not be Ready for a while because their nodes were not heard of.
    """
    return all(_is_settled(fact) for fact in map(json.loads, state))


def _is_settled(fact: Body) -> bool:
    match fact["kind"]:
        case "Pod":
            return is_ready(fact)
        case "Job":
            # What it says of its pod comes after what the pod says.
            return bool(fact["status"].get("ready") == fact["status"].get("active"))
        case "StatefulSet":
            return bool(fact["status"].get("readyReplicas") == fact["spec"]["replicas"])
        case "MPIJob":
            roles = fact["status"]["replicaStatuses"].values()
            return all(role.get("active") == 1 for role in roles)
        case _:
            return True


def has_workers(state: State) -> bool:
    """Whether anything of its workers is left: they go one after the other, their pods last or nearly so."""
    return any(
        fact["kind"] in _OF_WORKERS or (fact["kind"] == "Pod" and fact["metadata"]["name"].startswith(_WORKER))
        for fact in map(json.loads, state)
    )


def _is_worth_it(event: Body, name: str) -> bool:
    is_told = event["source"].get("component") == _OWN or event["reason"] in _TOLD
    return is_told and name in event["involvedObject"]["name"]


def _is_kubernetes_word(line: str) -> bool:
    fact = json.loads(line)
    return fact["kind"] == "Event" and fact["said"][1] in _TOLD


def _event(event: Body) -> str:
    about, message = event["involvedObject"], _READY.sub(r"N of \1 workers are Ready", event["message"])
    return json.dumps({
        "kind": "Event",
        "about": [about["kind"], about["name"], about.get("fieldPath", "")],
        "said": [event["type"], event["reason"], message, event.get("count")],
    })  # fmt: skip


def _object(item: Body) -> str:
    fields = item["metadata"].get("managedFields", [])
    managers = {(field["manager"], field["operation"]) for field in fields if field["manager"] != _AT_TIMES}
    left_out = _LEFT_OUT | ({"data"} if item["kind"] == "Secret" else set())
    plain = _without(item, left_out) | {"managers": sorted(managers)}
    return json.dumps({"kind": plain.pop("kind")} | plain, sort_keys=True)


def _without(value: Any, names: Iterable[str]) -> Any:
    match value:
        case dict():
            return {key: _without(one, names) for key, one in value.items() if key not in names}
        case list():
            return [_without(one, names) for one in value]
        case _:
            return value


def _without_differences(line: str) -> str:
    for pattern, word in _DIFFERS:
        line = pattern.sub(word, line)
    return line


def _unfolded(lines: State) -> list[str]:
    return [part for line in lines for part in json.dumps(json.loads(line), indent=1).splitlines()]


# Several times what a change of leaders takes, and what the words that are kept back for a while wait.
SETTLES_WITHIN = 90.0


def lasting_difference(wanted: State, look: Callable[[], State], *, all_is_told: bool = True) -> str:
    """
    What differs once everything has had its time to become equal; empty if nothing does.

    `all_is_told`: whether Kubernetes could tell all that it did, or the API server was away.
    """

    def differs() -> str:
        found = look()
        return difference(wanted if all_is_told else as_far_as_told(wanted, found), found)

    def is_equal() -> bool:
        try:
            return not differs()
        except ClusterError:
            # A look that failed says nothing; the one after the wait has to succeed.
            return False

    with suppress(ClusterError):
        until(is_equal, within=SETTLES_WITHIN, what="the same state")
    return differs()


def state_when(look: Callable[[], State], is_it: Callable[[State], bool], what: str) -> State:
    """The first state of which that is true."""
    return until(
        lambda: found if is_it(found := look()) else (),
        within=SETTLES_WITHIN,
        what=what,
        instead=lambda: "\n".join(look()),
    )
