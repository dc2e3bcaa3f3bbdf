"""
A node is lost under running jobs: what was on it is made again elsewhere, and each job says what it has lost.

What a launcher finds out itself about its workers is in tests/e2e/lostnode: here it hears of nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from mpirt import names
from testbed.ground import Ground
from testbed.kube.kubectl import is_ready
from testbed.kube.wait import until
from testbed.manifests import rather_on
from testbed.plane import nodes
from tests.api.controllers import Controller
from tests.api.endings import FAILS, SUCCEEDS, have, launcher, running
from tests.promises import promise
from tests.support.stories import Story, condition, held
from tests.support.times import Times

NODE = "lost-node"

# Kubernetes finds a node unreachable after 50 s. Its pods tolerate that for 60 s, and have 5 or 30 s to end.
WITHIN = 240.0


@dataclass(frozen=True)
class Victim:
    """A job, and its pods that were on the node."""

    story: Story
    workers: list[dict[str, Any]]
    launchers: list[dict[str, Any]]


@dataclass(frozen=True)
class Victims:
    """All of them; all but one may be tried again."""

    workers: Victim
    """Both of its workers were there."""
    led: Victim
    """Its launcher."""
    led_once: Victim
    """The same; it may not be tried again."""
    led_again: Victim
    """The same; one had failed there before, and its pod goes with the node."""
    whole: Victim
    """All of it."""
    deleted: Victim
    """Both of its workers; a person deleted them after the node was lost."""
    patient: Victim
    """Both of its workers, which tolerate that for ever."""
    lost: float
    """When the node was, by the monotonic clock."""


@pytest.fixture(scope="module")
def victims(controller: Controller, cluster: Ground) -> Iterator[Victims]:
    """Jobs that have lost the node; what is left there goes with it in the end."""
    there = {**rather_on(NODE), **nodes.tolerating(NODE), "topologySpreadConstraints": []}
    with with_node(cluster), ExitStack() as jobs:

        def victim(
            prefix: str, *, retries: int = 1, has_failed: bool = False, copes: bool = False, **pods: Any
        ) -> Victim:
            one = jobs.enter_context(running(controller, prefix, retries=retries, **pods))
            if copes:
                cope_with_losses(one)
            if has_failed:
                fail_once(one)
            return Victim(one, on_the_node(one, "worker"), on_the_node(one, "launcher"))

        made = Victims(
            workers=victim("workers", worker=there, copes=True),
            led=victim("led", launcher=there),
            led_once=victim("led-once", launcher=there, retries=0),
            led_again=victim("led-again", launcher=there, retries=2, has_failed=True),
            whole=victim("whole", worker=there, launcher=there, copes=True),
            deleted=victim("deleted", worker=there),
            patient=victim("patient", worker={**there, "tolerations": [{"operator": "Exists"}]}),
            lost=time.monotonic(),
        )
        nodes.lose(cluster.kubectl, NODE)
        for pod in made.deleted.workers:
            controller.namespace.kubectl("delete", "pod", name(pod), "--wait=false")
        yield made


@contextmanager
def with_node(cluster: Ground) -> Iterator[None]:
    nodes.add(cluster.kubectl, [NODE], alone=True)
    try:
        yield
    finally:
        nodes.remove(cluster.kubectl, NODE)


def fail_once(one: Story) -> None:
    """Have its launcher fail; returns when another runs."""
    have(one.job, launcher(one.job), FAILS)
    restarting = one.until("Restarting")
    one.until("Running", after=restarting.at)


def cope_with_losses(one: Story) -> None:
    """Have its launcher be believed: KWOK starts no init containers, so it runs while its workers are away."""
    name = f"{names.TOLERATES_ANNOTATION}=true"
    one.job.namespace.kubectl("annotate", "mpijobs.kubeflow.org", one.job.name, name)


@promise("Workers on a lost node are replaced on another node, and the job succeeds.", of="MPIJob")
@promise("With mpirt.dev/tolerates-lost-workers a job succeeds though it has lost workers.", of="MPIJob")
def test_lost_workers_are_made_again_elsewhere_and_the_job_goes_on(victims: Victims, times: Times) -> None:
    one = victims.workers.story
    assert len(victims.workers.workers) == 2

    wait_for_workers_elsewhere(one)
    times.add("node lost: its workers (grace period 5 s) Ready elsewhere", time.monotonic() - victims.lost)
    have(one.job, launcher(one.job), SUCCEEDS)

    assert "Succeeded" in held(one.end()), one.lines()
    assert one.events("MPIJobRestarting") == []


@promise("A launcher on a lost node gets a successor on another node, and the job succeeds.", of="MPIJob")
@pytest.mark.parametrize("which", ["led", "whole"])
@pytest.mark.one_in(3)
def test_a_lost_launcher_gets_a_successor_elsewhere_and_the_job_succeeds(victims: Victims, which: str) -> None:
    victim: Victim = getattr(victims, which)
    one = victim.story
    [first] = map(name, victim.launchers)

    one.until("Restarting")
    until(lambda: launcher(one.job) != first, within=WITHIN, what="another launcher", instead=one.lines)
    # KWOK starts no init containers: on nodes, the successor waits for this in one.
    until(lambda: first not in map(name, one.job.pods("launcher")), within=WITHIN, what=f"the end of {first}")
    wait_for_workers_elsewhere(one)
    have(one.job, launcher(one.job), SUCCEEDS)

    assert "Succeeded" in held(one.end()), one.lines()
    [event] = one.events("MPIJobRestarting")
    says = event.message.split("; ")
    assert f"launcher pod {first} was lost with its node {NODE}" in says
    # Those that Kubernetes gave up a moment later are not in it.
    assert set(says[:-1]) <= {f"{name(pod)} was lost with its node {NODE}" for pod in victim.workers}


def test_a_lost_launcher_is_reported_though_one_had_failed_on_that_node_before(victims: Victims) -> None:
    one = victims.led_again.story
    first, second = sorted(victims.led_again.launchers, key=lambda pod: str(pod["status"]["phase"]))
    assert [pod["status"]["phase"] for pod in (first, second)] == ["Failed", "Running"]

    until(lambda: launcher(one.job) != name(second), within=WITHIN, what="a third launcher", instead=one.lines)
    have(one.job, launcher(one.job), SUCCEEDS)

    assert "Succeeded" in held(one.end()), one.lines()
    assert [event.message for event in one.events("MPIJobRestarting")] == [
        f"launcher pod {name(first)} ended with code 1",
        f"launcher pod {name(second)} was lost with its node {NODE}",
    ]


@promise("A job that may not be tried again fails, and its message names the pod and the cause.", of="MPIJob")
def test_a_job_that_may_not_be_tried_again_fails_with_pod_and_node(victims: Victims) -> None:
    one = victims.led_once.story
    [first] = map(name, victims.led_once.launchers)

    end = one.end()

    assert condition(end, "Failed")["reason"].startswith("BackoffLimitExceeded"), one.lines()
    assert f"auncher pod {first} was lost with its node {NODE}" in held(end)["Failed"]


@promise("A pod that a person has deleted on a lost node is replaced when its tolerations are over.", of="MPIJob")
def test_workers_that_a_person_deleted_there_are_made_again_when_what_they_tolerate_is_over(
    victims: Victims,
) -> None:
    wait_for_workers_elsewhere(victims.deleted.story)


@promise("A toleration of lost nodes in the template is kept: such workers stay there.", of="MPIJob")
def test_workers_that_tolerate_the_loss_for_ever_stay_though_others_are_made_again(victims: Victims) -> None:
    wait_for_workers_elsewhere(victims.workers.story)

    there = {pod["metadata"]["uid"]: pod["metadata"] for pod in victims.patient.story.job.pods("worker")}
    assert set(there) == {pod["metadata"]["uid"] for pod in victims.patient.workers}
    assert not any("deletionTimestamp" in metadata for metadata in there.values())


def wait_for_workers_elsewhere(one: Story) -> None:
    """Until all of them are Ready on other nodes."""

    def elsewhere() -> list[dict[str, Any]]:
        return [pod for pod in one.job.pods("worker") if is_ready(pod) and pod["spec"]["nodeName"] != NODE]

    until(lambda: len(elsewhere()) == 2, within=WITHIN, what=f"workers of {one.job.name}", instead=one.lines)


def on_the_node(one: Story, role: str) -> list[dict[str, Any]]:
    return [pod for pod in one.job.pods(role) if pod["spec"].get("nodeName") == NODE]


def name(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["name"])
