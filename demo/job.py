"""
The job of examples/pi: submitted, waited for, its launcher's log streamed, and where its ranks ran.

Owns: what is asked of the cluster about it, and what is read out of the answers.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from demo.place import Kubectl
from testbed.kube.errors import ClusterError
from testbed.kube.paths import PROJECT
from testbed.kube.status import table
from testbed.kube.wait import until

FILE = PROJECT / "examples/pi/pi.yaml"
_IMAGE = "image: mpirt-example/pi\n"
_NAME = "pi"
_LAUNCHER = f"job/{_NAME}-launcher"
_LABELS = f"training.kubeflow.org/job-name={_NAME},training.kubeflow.org/job-role="
_STARTS_WITHIN = 240.0
_ENDS_WITHIN = 120.0
_LOOK = "to look at it, run the demo again with KEEP=yes"
_ENDS = ("Succeeded", "Failed")
_RANK = re.compile(r"rank (\d+) of \d+ runs on (\S+)")


@dataclass(frozen=True, slots=True, order=True)
class Rank:
    """A process of the job and where it ran."""

    number: int
    pod: str
    node: str


def submit(kubectl: Kubectl, image: str) -> None:
    """Create it, with its image's name in the place of the example's."""
    kubectl("apply", "--filename=-", stdin=FILE.read_text(encoding="utf-8").replace(_IMAGE, f"image: {image}\n"))


def follow(kubectl: Kubectl) -> list[str]:
    """Wait until the launcher runs, and print its log as it comes. Returns the lines."""
    _wait_for_launcher(kubectl)
    lines = []
    print(f"\n$ kubectl logs --follow {_LAUNCHER}", flush=True)
    argv = kubectl.argv("logs", "--follow", "--container=pi", _LAUNCHER)
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                print(line, end="", flush=True)
                lines.append(line)
        finally:
            process.terminate()
    return lines


def wait_for_end(kubectl: Kubectl) -> None:
    """Raise unless it succeeds; the message is the controller's own."""
    until(lambda: _has_any(_job(kubectl), _ENDS), within=_ENDS_WITHIN, what="the job to end")
    job = _job(kubectl)
    if not _holds(job, "Succeeded"):
        raise ClusterError(f"the job has failed: {_message(job, 'Failed')}", remedy=_LOOK)


def ranks(lines: Iterable[str], workers: Sequence[Mapping[str, Any]]) -> list[Rank]:
    """Where each rank says it ran, and on which node that pod is."""
    nodes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in workers}
    found = [match.groups() for line in lines if (match := _RANK.search(line))]
    return sorted(Rank(int(number), pod, nodes.get(pod, "?")) for number, pod in found)


def where(kubectl: Kubectl, lines: Iterable[str]) -> list[Rank]:
    """The ranks of the job that wrote these lines."""
    return ranks(lines, kubectl.get("pods", f"--selector={_LABELS}worker"))


def show(kubectl: Kubectl) -> None:
    """The job as kubectl shows it."""
    print(f"\n$ kubectl get mpijob\n{kubectl('get', 'mpijob').stdout}", flush=True)


def rendered(found: Sequence[Rank]) -> str:
    """A table of them."""
    rows = [("RANK", "POD", "NODE"), *((str(each.number), each.pod, each.node) for each in found)]
    return "\n".join(table(rows))


def _wait_for_launcher(kubectl: Kubectl) -> None:
    """Until it runs, or has run; while it doesn't, the job says why."""
    said = ""

    def has_started() -> bool:
        nonlocal said
        job = _job(kubectl)
        if _has_any(job, ("Running", *_ENDS)):
            return True
        if (message := _message(job, "Running")) not in {said, ""}:
            print(f"  {message}", flush=True)
            said = message
        return False

    until(has_started, within=_STARTS_WITHIN, what="the launcher to start", remedy=_LOOK)


def _has_any(job: Mapping[str, Any], kinds: Sequence[str]) -> bool:
    return any(_holds(job, kind) for kind in kinds)


def _job(kubectl: Kubectl) -> Mapping[str, Any]:
    found: Mapping[str, Any] = kubectl.get("mpijob", _NAME)
    return found


def _condition(job: Mapping[str, Any], kind: str) -> Mapping[str, str]:
    conditions = job.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), {})


def _holds(job: Mapping[str, Any], kind: str) -> bool:
    return _condition(job, kind).get("status") == "True"


def _message(job: Mapping[str, Any], kind: str) -> str:
    return _condition(job, kind).get("message", "")
