"""
Writes for a TrainingJob whose workers change, in words: what is written, and as far as others depend on it, how.

Owns: the words. Two writes of a change have the same words only if it makes no difference which of both it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from mpirt.controller.model.objectnames import NEEDED_KEY
from tests.api.apiproxy import Write
from tests.api.trainings import Body


def words(write: Write) -> str:
    """The write as it stands in a change."""
    detail = _DETAILS.get(str(write))
    return str(write) if detail is None else f"{write} {detail(write)}"


def _event(write: Write) -> str:
    is_of_job = write.content["involvedObject"]["kind"] == "TrainingJob"
    return f"{write.content['reason']} of the {'job' if is_of_job else 'scaler'}"


def _pod(write: Write) -> str:
    return "launcher" if "-launcher-" in write.name else _numbers([write.name])


def _hosts(write: Write) -> str:
    data = write.content[-1]["value"]
    hosts = [line.partition(":")[0] for line in data["hostfile"].split()]
    return f"hosts {_numbers(hosts)} of {data[NEEDED_KEY]}"


def _reachable(write: Write) -> str:
    [named] = [rule["resourceNames"] for rule in write.content[-1]["value"] if "resourceNames" in rule]
    return f"of {_numbers(named)}"


def _phase(write: Write) -> str:
    return str(write.content[-1]["value"]["phase"])


def _step(write: Write) -> str:
    scaling: Body = write.content[-1]["value"]["scaling"]
    said = ["pods to create"] if "pending" in scaling else []
    if scaling.get("change", {}).get("committed", False):
        said.append("committed")
    return ", ".join([_phase(write), *said, *map(_drain, scaling.get("drains", ()))])


def _drain(drain: Body) -> str:
    if drain.get("committed", False):
        return "leaves now"
    return "waits for its successor" if "after" in drain else "leaves"


def _numbers(workers: Iterable[str]) -> str:
    return " ".join(name.rpartition("-")[2] for name in workers)


_DETAILS: Mapping[str, Callable[[Write], str]] = {
    "POST events": _event,
    "POST pods": _pod,
    "PATCH pods": _pod,
    "DELETE pods": _pod,
    "PATCH configmaps": _hosts,
    "PATCH roles": _reachable,
    "PATCH trainingjobs/status": _step,
    "PATCH scaleins/status": _phase,
    "PATCH scaleouts/status": _phase,
}
