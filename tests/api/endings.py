"""Running jobs whose pods end when a test asks them to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, submit
from testbed.plane.stages import ENDS, NEVER, REASON
from tests.api.controllers import Controller, job_name
from tests.support.stories import Story, story

# Kubernetes lets ten seconds pass between two attempts; words alone are written every ten seconds.
WITHIN = 60.0

OUT_OF_MEMORY = (f"{ENDS}=137", f"{REASON}=OOMKilled")
FAILS, SUCCEEDS = (f"{ENDS}=1",), (f"{ENDS}=0",)


@contextmanager
def running(controller: Controller, prefix: str, *, retries: int, **pods: Any) -> Iterator[Story]:
    """A job of two workers whose launcher ends when a test asks it to; `pods` are for `submit`."""
    namespace = controller.namespace
    job = submit(
        namespace,
        job_name(prefix),
        "busybox",
        ("true",),
        annotations={"Launcher": {ENDS: NEVER}},
        runPolicy={"backoffLimit": retries},
        **pods,
    )
    with story(job) as told:
        told.until("Running")
        yield told
    namespace.kubectl("delete", "mpijobs.kubeflow.org", job.name, "--wait=false", "--ignore-not-found")


def have(job: MpiJob, pod: str, words: tuple[str, ...]) -> None:
    """Have that happen to a pod."""
    job.namespace.kubectl("annotate", "pod", pod, *words, "--overwrite")


def launcher(job: MpiJob) -> str:
    """The launcher's pod that runs and is to go on. A Job replaces one that is being deleted at once."""

    def found() -> list[dict[str, Any]]:
        running = [pod for pod in job.pods("launcher") if pod["status"]["phase"] == "Running"]
        return [pod for pod in running if "deletionTimestamp" not in pod["metadata"]]

    [pod] = until(found, within=WITHIN, what=f"a launcher of {job.name} that runs")
    return str(pod["metadata"]["name"])
