"""Two replicas, of which one acts."""

from __future__ import annotations

import time

from tests.e2e.controller.deployed import Deployed
from tests.e2e.ground import Faults
from tests.kube.wait import until

# Twenty seconds are promised; a machine that is busy with other things gets more.
WITHIN = 45.0


def test_when_the_leader_is_killed_another_process_leads(controller: Deployed, fault: Faults) -> None:
    holder = controller.holder()
    assert len(controller.pods()) == 2

    # Its process gets SIGKILL, so it can't give the lease back. The kubelet starts a successor in the same pod,
    # and that may be the one that gets it.
    begun = time.monotonic()
    fault.oom(controller.namespace.kubectl, controller.leader())
    until(lambda: controller.holder() not in ("", holder), within=WITHIN, what="another leader")

    print(f"another leader after {time.monotonic() - begun:.1f} s")


def test_who_is_asked_to_end_leaves_the_lease_to_the_other(controller: Deployed) -> None:
    leader = controller.leader()

    controller.namespace.kubectl("delete", "pod", leader, "--wait=false")
    until(lambda: controller.leader() not in ("", leader), within=WITHIN, what="another leader")

    until(lambda: len(controller.pods()) == 2, within=WITHIN, what="two replicas again")


def test_no_object_is_made_by_both(controller: Deployed) -> None:
    made = [
        (line["job"], line["kind"], line["name"])
        for line in controller.log()
        if line.get("action") == "create" and "outcome" not in line and line["kind"] == "StatefulSet"
    ]

    assert len(made) == len(set(made))
