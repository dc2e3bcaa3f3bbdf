"""A launcher's pod that somebody deletes: the next one waits for its end. What else comes back is in tests/api."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.controller.deployed import Deployed, job_name
from tests.e2e.controller.mpijobs import MpiJob, submit
from tests.e2e.controller.stories import pods_of
from tests.e2e.controller.watching import State

# How soon it starts is seen by a watch.
pytestmark = [pytest.mark.alone, pytest.mark.oldest]

WHOLE_WITHIN = 120.0
GRACE = 4
# Doesn't end as soon as it is asked to.
STUBBORN = ("/bin/sh", "-c", "trap '' TERM; while :; do sleep 1; done")


@pytest.fixture
def running(controller: Deployed) -> Iterator[MpiJob]:
    """A job whose launcher goes on for as long as the test needs."""
    namespace = controller.namespace
    job = submit(
        namespace, job_name("heal"), "openmpi4", STUBBORN, launcher={"terminationGracePeriodSeconds": GRACE}
    )
    job.wait_for("Running")
    yield job
    namespace.kubectl("delete", "mpijobs.kubeflow.org", job.name, "--wait=false")


def test_a_launcher_starts_when_the_one_before_it_has_ended(running: MpiJob) -> None:
    """Whoever replaces the pod, and however long that one takes to end."""
    [old] = [pod["metadata"]["name"] for pod in running.pods("launcher") if pod["status"]["phase"] == "Running"]
    with pods_of(running, "launcher") as pods:
        running.namespace.kubectl("delete", "pod", old, "--wait=false")
        over = pods.wait(
            lambda state: is_named(state, old) and is_over(state), within=WHOLE_WITHIN, what=f"the end of {old}"
        )
        started = pods.wait(
            lambda state: state.uid != over.uid and state.body["status"]["phase"] == "Running",
            within=WHOLE_WITHIN,
            what="another launcher that runs",
        )

    assert started.version > over.version


def is_named(state: State, name: str) -> bool:
    return bool(state.body["metadata"]["name"] == name)


def is_over(pod: State) -> bool:
    return pod.deleted or pod.body["status"]["phase"] in ("Succeeded", "Failed")
