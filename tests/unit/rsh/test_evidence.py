"""From what is known to what happened."""

from __future__ import annotations

import pytest

from mpirt.errors import ExitCode
from mpirt.kubeapi.request.channels import ExitedWith, Failed, Succeeded
from mpirt.rsh.pod.evidence import Facts, KeeperGone, Verdict, judge, judge_pod
from mpirt.rsh.pod.facts import Pod
from mpirt.rsh.pod.liveness import DEAD_AFTER
from tests.unit.rsh import pods

HEALTHY = pods.HEALTHY


def facts(**known: object) -> Facts:
    return Facts("w", **{"first": HEALTHY, "last": HEALTHY, **known})  # type: ignore[arg-type] # the table names them


def with_container(*, phase: str = "Running", **status: object) -> Pod:
    return pods.pod(status={"phase": phase, "containerStatuses": [pods.container_status(**status)]})


DELETED: dict[str, object] = {"deletionTimestamp": "2026-11-20T12:00:00Z"}
DISRUPTED = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
GONE = "the keeper of the command in pod w is gone: something has killed it, or its lease was over"


class TestAlive:
    @pytest.mark.parametrize(
        "known",
        [
            pytest.param(facts(), id="a healthy pod"),
            pytest.param(Facts("w"), id="nothing known"),
            pytest.param(facts(silence=DEAD_AFTER), id="silence, which ends the connection and not the command"),
            pytest.param(facts(api_silent="connection refused"), id="only the API server is away"),
            pytest.param(facts(last=pods.NODE_LOST), id="a node that seems lost but answers"),
            pytest.param(facts(first=None), id="no earlier state"),
            pytest.param(facts(first=pods.PENDING), id="a container that had no identity yet"),
            pytest.param(
                facts(last=pods.RESTARTED), id="an older container's end, beside a connection that lives"
            ),
        ],
    )
    def test_nothing_speaks_against_it(self, known: Facts) -> None:
        assert judge(known) is None

    @pytest.mark.parametrize("pod", [pods.NODE_LOST, HEALTHY])
    def test_nothing_of_the_pod_speaks_against_a_node_that_is_waited_for(self, pod: Pod) -> None:
        assert judge_pod(facts(last=pod, closed="cut", can_wait=True)) is None


# fmt: off
VERDICTS = {
    "gone": (facts(gone=True), ExitCode.POD_DELETED, "pod w was deleted"),
    "replaced":
        (facts(last=pods.REPLACED), ExitCode.POD_DELETED, "pod w was deleted, and another one has its name now"),
    "evicted": (facts(last=pods.EVICTED), ExitCode.EVICTED, "pod w was evicted from node node-1"),
    "removed by its node":
        (facts(last=pods.pod(status={"phase": "Failed", "conditions": [DISRUPTED]})), ExitCode.EVICTED,
         "pod w was removed from node node-1 (TerminationByKubelet)"),
    "ended, though it is always restarted":
        (facts(last=pods.ENDED_BY_ITS_NODE), ExitCode.EVICTED,
         "pod w was evicted from node node-1, or the node is shutting down: Succeeded (Completed, code 0)"),
    "ended while it was deleted":
        (facts(last=pods.pod(metadata=DELETED, spec={"restartPolicy": "Always"}, status={"phase": "Succeeded"})),
         ExitCode.CONTAINER_DIED, "pod w has ended: Succeeded"),
    "ended":
        (facts(last=pods.pod(status={"phase": "Succeeded"})), ExitCode.CONTAINER_DIED,
         "pod w has ended: Succeeded"),
    "failed":
        (facts(last=with_container(phase="Failed", state=pods.OOM_KILLED)),
         ExitCode.CONTAINER_DIED, "pod w has ended: Failed (OOMKilled, code 137)"),
    "container ended":
        (facts(closed="reset", last=with_container(state=pods.OOM_KILLED)),
         ExitCode.CONTAINER_DIED, "the container of pod w has ended (OOMKilled, code 137)"),
    "container restarted":
        (facts(closed="reset", last=pods.RESTARTED), ExitCode.CONTAINER_DIED,
         "the container of pod w was restarted (OOMKilled, code 137)"),
    "container restarting":
        (facts(closed="reset", last=with_container(containerID="", restartCount=1)),
         ExitCode.CONTAINER_DIED, "the container of pod w was restarted"),
    "node lost, and silent":
        (facts(last=pods.NODE_LOST, silence=6.0), ExitCode.NODE_LOST,
         "node node-1 of pod w is lost: the cluster can't hear it"),
    "node lost, and a false success":
        (facts(last=pods.NODE_LOST, status=Succeeded()), ExitCode.NODE_LOST,
         "node node-1 of pod w is lost: the cluster can't hear it"),
    "killed":
        (facts(status=ExitedWith(137)), 137,
         "something in pod w ended the command from outside (code 137, signal 9)"),
    "ended without a report":
        (facts(status=ExitedWith(3), closed="closed"), 3,
         "something in pod w ended the command from outside (code 3)"),
    "false success":
        (facts(status=Succeeded()), ExitCode.UNKNOWN_END,
         "the command in pod w was cut off: the server reports success, the command itself nothing"),
    "failure":
        (facts(status=Failed("InternalError", "task not found")), ExitCode.CONNECTION_LOST,
         "the command in pod w was cut off: task not found"),
    "failure without a reason":
        (facts(status=Failed("", "")), ExitCode.CONNECTION_LOST,
         "the command in pod w was cut off: no reason given"),
    "closed":
        (facts(closed="the API server closed it"), ExitCode.CONNECTION_LOST,
         "the connection to pod w was lost: the API server closed it"),
    "closed, and the API server away":
        (facts(closed="reset", api_silent="refused"), ExitCode.CONNECTION_LOST,
         "the connection to pod w was lost: reset; the API server can't be reached: refused"),
    "a keeper killed in a container that lives":
        (facts(status=Succeeded(), keeper_gone=KeeperGone.ALONE), ExitCode.UNKNOWN_END, GONE),
    "a keeper gone from what may be the next container":
        (facts(closed="reset", keeper_gone=KeeperGone.UNKNOWN), ExitCode.UNKNOWN_END, GONE),
    "a keeper killed with its bridge":
        (facts(status=ExitedWith(137), keeper_gone=KeeperGone.ALONE), 137,
         "something in pod w ended the command from outside (code 137, signal 9)"),
    "a keeper gone with its container":
        (facts(status=ExitedWith(137), keeper_gone=KeeperGone.WITH_CONTAINER), ExitCode.CONTAINER_DIED,
         "the container of pod w was restarted"),
    "a container that is not found any more":
        (facts(status=ExitedWith(137), keeper_gone=KeeperGone.CONTAINER_ENDED), ExitCode.CONTAINER_DIED,
         "the container of pod w has ended"),
}
# fmt: on


class TestTheVerdict:
    @pytest.mark.parametrize(("known", "code", "cause"), VERDICTS.values(), ids=VERDICTS)
    def test_the_verdict_names_what_happened(self, known: Facts, code: int, cause: str) -> None:
        assert judge(known) == Verdict(code, cause)

    @pytest.mark.parametrize(
        ("pod", "code", "cause", "grace"),
        [
            (pods.DELETING, ExitCode.POD_DELETED, "pod w is being deleted", None),
            (pods.DELETING_IN_30_S, ExitCode.POD_DELETED, "pod w is being deleted", 30),
            (pods.TAINTED, ExitCode.EVICTED, "pod w is being evicted (DeletionByTaintManager)", None),
        ],
        ids=["deletion in progress", "deletion with a grace", "eviction in progress"],
    )
    def test_a_pod_that_is_going_away_can_be_left_in_order(
        self, pod: Pod, code: int, cause: str, grace: float | None
    ) -> None:
        assert judge(facts(last=pod)) == Verdict(code, cause, leaving=True, grace=grace)

    def test_a_lost_nodes_pod_that_is_marked_for_deletion_is_lost(self) -> None:
        conditions = [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]
        marked = pods.pod(metadata={"deletionTimestamp": "2026"}, status={"conditions": conditions})

        assert judge(facts(last=marked, silence=20.0)) == Verdict(
            ExitCode.NODE_LOST, "node node-1 of pod w is lost: the cluster can't hear it"
        )

    def test_what_is_known_of_the_pod_needs_no_anomaly(self) -> None:
        assert judge_pod(facts(silence=20.0, closed="reset", status=Succeeded())) is None
        assert judge_pod(facts(gone=True)) == Verdict(ExitCode.POD_DELETED, "pod w was deleted")
