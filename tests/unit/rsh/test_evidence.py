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
    return Facts("w", **{"before": HEALTHY, "now": HEALTHY, **known})  # type: ignore[arg-type] # the table names them


class TestAlive:
    @pytest.mark.parametrize(
        "known",
        [
            pytest.param(facts(), id="a healthy pod"),
            pytest.param(Facts("w"), id="nothing known"),
            pytest.param(facts(silence=DEAD_AFTER - 0.1), id="a short silence"),
            pytest.param(facts(api_silent="connection refused"), id="only the API server is away"),
            pytest.param(facts(now=pods.NODE_LOST), id="a node that seems lost but answers"),
            pytest.param(facts(before=None), id="no earlier state"),
            pytest.param(facts(before=pods.PENDING), id="a container that had no identity yet"),
            pytest.param(facts(now=pods.RESTARTED), id="an older container's end, beside a connection that lives"),
        ],
    )
    def test_nothing_speaks_against_it(self, known: Facts) -> None:
        assert judge(known) is None

    @pytest.mark.parametrize("pod", [pods.NODE_LOST, HEALTHY])
    def test_nothing_of_the_pod_speaks_against_a_node_that_is_waited_for(self, pod: Pod) -> None:
        assert judge_pod(facts(now=pod, closed="cut", can_wait=True)) is None


class TestTheVerdict:
    @pytest.mark.parametrize(
        ("known", "code", "cause"),
        [
            pytest.param(facts(gone=True), ExitCode.POD_DELETED, "pod w was deleted", id="gone"),
            pytest.param(
                facts(now=pods.REPLACED),
                ExitCode.POD_DELETED,
                "pod w was deleted, and another one has its name now",
                id="replaced",
            ),
            pytest.param(
                facts(now=pods.EVICTED), ExitCode.EVICTED, "pod w was evicted from node node-1", id="evicted"
            ),
            pytest.param(
                facts(
                    now=pods.pod(
                        status={
                            "phase": "Failed",
                            "conditions": [
                                {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
                            ],
                        }
                    )
                ),
                ExitCode.EVICTED,
                "pod w was removed from node node-1 (TerminationByKubelet)",
                id="removed by its node",
            ),
            pytest.param(
                facts(now=pods.ENDED_BY_ITS_NODE),
                ExitCode.EVICTED,
                "pod w was evicted from node node-1, or the node is shutting down: Succeeded (Completed, code 0)",
                id="ended, though it is always restarted",
            ),
            pytest.param(
                facts(
                    now=pods.pod(
                        metadata={"deletionTimestamp": "2026-11-20T12:00:00Z"},
                        spec={"restartPolicy": "Always"},
                        status={"phase": "Succeeded"},
                    )
                ),
                ExitCode.CONTAINER_DIED,
                "pod w has ended: Succeeded",
                id="ended while it was deleted",
            ),
            pytest.param(
                facts(now=pods.pod(status={"phase": "Succeeded"})),
                ExitCode.CONTAINER_DIED,
                "pod w has ended: Succeeded",
                id="ended",
            ),
            pytest.param(
                facts(
                    now=pods.pod(
                        status={
                            "phase": "Failed",
                            "containerStatuses": [pods.container_status(state=pods.OOM_KILLED)],
                        }
                    )
                ),
                ExitCode.CONTAINER_DIED,
                "pod w has ended: Failed (OOMKilled, code 137)",
                id="failed",
            ),
            pytest.param(
                facts(
                    closed="reset",
                    now=pods.pod(status={"containerStatuses": [pods.container_status(state=pods.OOM_KILLED)]}),
                ),
                ExitCode.CONTAINER_DIED,
                "the container of pod w has ended (OOMKilled, code 137)",
                id="container ended",
            ),
            pytest.param(
                facts(closed="reset", now=pods.RESTARTED),
                ExitCode.CONTAINER_DIED,
                "the container of pod w was restarted (OOMKilled, code 137)",
                id="container restarted",
            ),
            pytest.param(
                facts(
                    closed="reset",
                    now=pods.pod(
                        status={"containerStatuses": [pods.container_status(containerID="", restartCount=1)]}
                    ),
                ),
                ExitCode.CONTAINER_DIED,
                "the container of pod w was restarted",
                id="container restarting",
            ),
            pytest.param(
                facts(now=pods.NODE_LOST, silence=6.0),
                ExitCode.NODE_LOST,
                "node node-1 of pod w is lost: the cluster can't hear it",
                id="node lost, and silent",
            ),
            pytest.param(
                facts(now=pods.NODE_LOST, status=Succeeded()),
                ExitCode.NODE_LOST,
                "node node-1 of pod w is lost: the cluster can't hear it",
                id="node lost, and a false success",
            ),
            pytest.param(
                facts(status=ExitedWith(137)),
                137,
                "something in pod w ended the command from outside (code 137, signal 9)",
                id="killed",
            ),
            pytest.param(
                facts(status=ExitedWith(3), closed="closed"),
                3,
                "something in pod w ended the command from outside (code 3)",
                id="ended without a report",
            ),
            pytest.param(
                facts(status=Succeeded()),
                ExitCode.UNKNOWN_END,
                "the command in pod w was cut off: the server reports success, the command itself nothing",
                id="false success",
            ),
            pytest.param(
                facts(status=Failed("InternalError", "task not found")),
                ExitCode.CONNECTION_LOST,
                "the command in pod w was cut off: task not found",
                id="failure",
            ),
            pytest.param(
                facts(status=Failed("", "")),
                ExitCode.CONNECTION_LOST,
                "the command in pod w was cut off: no reason given",
                id="failure without a reason",
            ),
            pytest.param(
                facts(closed="the API server closed it"),
                ExitCode.CONNECTION_LOST,
                "the connection to pod w was lost: the API server closed it",
                id="closed",
            ),
            pytest.param(
                facts(closed="reset", api_silent="refused"),
                ExitCode.CONNECTION_LOST,
                "the connection to pod w was lost: reset; the API server can't be reached: refused",
                id="closed, and the API server away",
            ),
            pytest.param(
                facts(status=Succeeded(), keeper_gone=KeeperGone.ALONE),
                ExitCode.UNKNOWN_END,
                "the keeper of the command in pod w is gone: something has killed it, or its lease was over",
                id="a keeper killed in a container that lives",
            ),
            pytest.param(
                facts(closed="reset", keeper_gone=KeeperGone.UNKNOWN),
                ExitCode.UNKNOWN_END,
                "the keeper of the command in pod w is gone: something has killed it, or its lease was over",
                id="a keeper gone from what may be the next container",
            ),
            pytest.param(
                facts(status=ExitedWith(137), keeper_gone=KeeperGone.ALONE),
                137,
                "something in pod w ended the command from outside (code 137, signal 9)",
                id="a keeper killed with its bridge",
            ),
            pytest.param(
                facts(status=ExitedWith(137), keeper_gone=KeeperGone.WITH_CONTAINER),
                ExitCode.CONTAINER_DIED,
                "the container of pod w was restarted",
                id="a keeper gone with its container",
            ),
            pytest.param(
                facts(status=ExitedWith(137), keeper_gone=KeeperGone.CONTAINER_ENDED),
                ExitCode.CONTAINER_DIED,
                "the container of pod w has ended",
                id="a container that is not found any more",
            ),
            pytest.param(
                facts(silence=DEAD_AFTER),
                ExitCode.NODE_LOST,
                "node node-1 of pod w has not answered for 14 s, while the API server does",
                id="silent",
            ),
            pytest.param(
                Facts("w", silence=15.4),
                ExitCode.NODE_LOST,
                "the node of pod w has not answered for 15 s, while the API server does",
                id="silent, and no pod was ever seen",
            ),
            pytest.param(
                facts(silence=14.0, api_silent="no answer within 3 s"),
                ExitCode.CONNECTION_LOST,
                "the connection to pod w is dead for 14 s: no answer within 3 s",
                id="all silent",
            ),
        ],
    )
    def test_it_names_what_happened(self, known: Facts, code: int, cause: str) -> None:
        assert judge(known) == Verdict(code, cause)

    @pytest.mark.parametrize(
        ("known", "code", "cause"),
        [
            pytest.param(
                facts(now=pods.DELETING), ExitCode.POD_DELETED, "pod w is being deleted", id="deletion in progress"
            ),
            pytest.param(
                facts(now=pods.TAINTED),
                ExitCode.EVICTED,
                "pod w is being evicted (DeletionByTaintManager)",
                id="eviction in progress",
            ),
        ],
    )
    def test_a_pod_that_is_going_away_can_be_left_in_order(self, known: Facts, code: int, cause: str) -> None:
        assert judge(known) == Verdict(code, cause, leaving=True)

    def test_a_pod_that_is_going_away_says_how_long_it_has(self) -> None:
        known = facts(now=pods.DELETING_IN_30_S)

        assert judge(known) == Verdict(ExitCode.POD_DELETED, "pod w is being deleted", leaving=True, grace=30)

    def test_a_lost_nodes_pod_that_is_marked_for_deletion_is_lost(self) -> None:
        conditions = [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]
        marked = pods.pod(metadata={"deletionTimestamp": "2026"}, status={"conditions": conditions})

        assert judge(facts(now=marked, silence=20.0)) == Verdict(
            ExitCode.NODE_LOST, "node node-1 of pod w is lost: the cluster can't hear it"
        )

    def test_what_is_known_of_the_pod_needs_no_anomaly(self) -> None:
        assert judge_pod(facts(silence=20.0, closed="reset", status=Succeeded())) is None
        assert judge_pod(facts(gone=True)) == Verdict(ExitCode.POD_DELETED, "pod w was deleted")
