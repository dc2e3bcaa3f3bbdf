"""What is read out of a pod object, and which container is entered."""

from __future__ import annotations

import pytest

from mpirt.errors import ConfigError
from mpirt.rsh.pod.facts import Container, Pod, choose_container, read_pod
from tests.unit.rsh import pods


class TestReading:
    def test_a_running_pod(self) -> None:
        found = pods.HEALTHY

        assert found == Pod(
            uid="uid-1",
            node="node-1",
            phase="Running",
            reason="",
            is_ready=True,
            may_be_entered_soon=False,
            unscheduled="",
            deleting=False,
            grace=None,
            restarts=False,
            disruption="",
            cut_off=False,
            containers={
                "worker": Container(
                    identity="containerd://1",
                    restarts=0,
                    running=True,
                    waiting="",
                    ended="",
                    has_ended=False,
                    begun="2026-11-20T12:00:00Z",
                )
            },
            default_container="",
        )
        assert not found.has_ended

    def test_a_container_that_was_restarted_tells_how_the_one_before_it_ended(self) -> None:
        found = pods.RESTARTED.container("worker")

        assert found == Container(
            "containerd://2",
            1,
            running=True,
            waiting="",
            ended="OOMKilled, code 137",
            has_ended=False,
            begun="2026-11-20T12:00:00Z",
        )

    def test_a_container_that_has_ended(self) -> None:
        ended = pods.pod(
            status={"containerStatuses": [pods.container_status(state={"terminated": {"exitCode": 3}})]}
        )

        assert ended.container("worker").has_ended
        assert ended.container("worker").ended == "code 3"

    def test_a_pod_that_is_on_its_way_says_what_it_waits_for(self) -> None:
        assert pods.PENDING.waits_for == "Pending: ContainerCreating"
        assert pods.HEALTHY.waits_for == "Running"
        assert read_pod({}).waits_for == "no phase"

    @pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
    def test_a_pod_that_has_ended(self, phase: str) -> None:
        assert pods.pod(status={"phase": phase}).has_ended

    def test_a_disruption_counts_when_it_is_true(self) -> None:
        false = {"type": "DisruptionTarget", "status": "False", "reason": "EvictionByEvictionAPI"}

        assert pods.TAINTED.disruption == "DeletionByTaintManager"
        assert pods.pod(status={"conditions": [false]}).disruption == ""

    def test_a_lost_nodes_pod_is_not_ready_though_its_containers_are(self) -> None:
        gated = pods.pod(
            spec={"readinessGates": [{"conditionType": "x"}]},
            status={
                "conditions": [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]
            },
        )

        assert pods.NODE_LOST.cut_off
        assert not gated.cut_off

    def test_a_deleted_pod_has_a_grace_period(self) -> None:
        assert (pods.DELETING.deleting, pods.DELETING.grace) == (True, None)
        assert pods.pod(metadata={"deletionTimestamp": "x", "deletionGracePeriodSeconds": 45}).grace == 45
        assert pods.pod(metadata={"deletionTimestamp": "x", "deletionGracePeriodSeconds": 0}).grace == 0

    @pytest.mark.parametrize("odd", ["30", -1, True, None, 1.5])
    def test_an_odd_grace_period_is_none(self, odd: object) -> None:
        assert pods.pod(metadata={"deletionTimestamp": "x", "deletionGracePeriodSeconds": odd}).grace is None

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"metadata": 1, "spec": [], "status": "x"},
            {
                "metadata": {"uid": 7, "annotations": [], "deletionTimestamp": None},
                "spec": {"containers": ["x"], "readinessGates": {}},
                "status": {"conditions": [None], "containerStatuses": [{"restartCount": "1", "state": 1}]},
            },
        ],
    )
    def test_odd_fields_are_no_evidence(self, body: dict[str, object]) -> None:
        found = read_pod(body)

        assert (found.uid, found.phase, found.deleting, found.cut_off) == ("", "", False, False)
        assert not found.container("").has_ended

    def test_a_container_that_is_not_known_is_nothing(self) -> None:
        assert pods.HEALTHY.container("other") == Container(
            "", 0, running=False, waiting="", ended="", has_ended=False
        )


TWO = pods.pod(spec={"containers": [{"name": "worker"}, {"name": "proxy"}]})


NAMED = pods.pod(
    metadata={"annotations": {"kubectl.kubernetes.io/default-container": "proxy"}},
    spec={"containers": [{"name": "worker"}, {"name": "proxy"}]},
)
REMARK = "of the containers worker, proxy the first is used; --container or MPIRT_CONTAINER chooses another"


class TestChoosing:
    @pytest.mark.parametrize(
        ("pod", "wanted", "chosen"),
        [
            pytest.param(pods.HEALTHY, "", ("worker", ""), id="the only one needs no word"),
            pytest.param(TWO, "proxy", ("proxy", ""), id="the one that is asked for"),
            pytest.param(NAMED, "", ("proxy", ""), id="the one that the pod names"),
            pytest.param(TWO, "", ("worker", REMARK), id="else the first, and it is said"),
            pytest.param(read_pod({}), "", ("", ""), id="of none none"),
        ],
    )
    def test_a_container_is_chosen(self, pod: Pod, wanted: str, chosen: tuple[str, str]) -> None:
        assert choose_container(pod, wanted) == chosen

    def test_one_that_is_not_there_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="no container other") as caught:
            choose_container(TWO, "other")
        assert str(caught.value).endswith("(--container, MPIRT_CONTAINER): there is only worker, proxy")
