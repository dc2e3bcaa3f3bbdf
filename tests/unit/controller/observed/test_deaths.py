"""What ends a job and what doesn't: a worker dies with its main container, and with nothing else of its pod."""

from __future__ import annotations

import pytest

from mpirt.controller.messages.causes import trouble
from mpirt.controller.model.attempts import How
from mpirt.controller.observed.history import launcher_end, worker_death
from mpirt.controller.observed.pods import read_pod
from mpirt.controller.observed.slim import slim
from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, at

SIDECAR = {"initContainers": [{"name": "istio-proxy", "restartPolicy": "Always", "image": "proxy"}]}


UNKNOWN = pytest.mark.parametrize(
    ("code", "reason"),
    [
        pytest.param(255, "Unknown", id="of containerd"),
        pytest.param(137, "ContainerStatusUnknown", id="of the kubelet"),
    ],
)


class TestAWorkersDeath:
    @pytest.mark.parametrize(
        "body",
        [
            pytest.param(
                pods.worker(0, inits=[pods.ended("setup", 0, "Completed", at=20)]),
                id="an init container completes",
            ),
            pytest.param(
                pods.worker(0, inits=[pods.restarted("setup", 1, at=20)]), id="an init container fails once"
            ),
            pytest.param(
                pods.worker(0, inits=[pods.ended("istio-proxy", 143, at=20)], spec=SIDECAR),
                id="a sidecar is ended",
            ),
            pytest.param(
                pods.worker(0, containers=[pods.running("main"), pods.restarted("log-shipper", 1, at=20)]),
                id="a log shipper restarts",
            ),
        ],
    )
    def test_is_not_that(self, body: Body) -> None:
        assert worker_death(read_pod(body), "main", at(15)) is None

    def test_is_that_of_its_main_container_wherever_it_stands_in_the_list(self) -> None:
        shipper, main = pods.restarted("a-shipper", 1, at=20), pods.restarted("main", 137, "OOMKilled", at=21)

        death = worker_death(read_pod(pods.worker(0, containers=[shipper, main])), "main", at(15))

        assert death is not None
        assert (death.container, death.code, death.reason) == ("main", 137, "OOMKilled")

    @pytest.mark.parametrize("code", [0, 1, 143])
    def test_is_that_of_a_container_that_was_started_again_whatever_its_code(self, code: int) -> None:
        again = pods.worker(0, containers=[pods.restarted("main", code, "Completed", at=20)])

        death = worker_death(read_pod(again), "main", at(15))

        assert death is not None
        assert death.code == code

    @UNKNOWN
    def test_by_a_restart_of_its_node_is_its_loss(self, code: int, reason: str) -> None:
        again = pods.worker(0, containers=[pods.restarted("main", code, reason, at=20)])

        death = worker_death(read_pod(again), "main", at(15))

        assert death is not None
        assert (death.how, death.code, death.reason) == (How.NODE_LOST, code, reason)


class TestALaunchersEnd:
    def test_is_told_by_its_main_container_first(self) -> None:
        sidecar, main = pods.ended("a-sidecar", 143, at=22), pods.ended("mpi", 3, at=20)

        end = launcher_end(read_pod(pods.launcher(phase="Failed", containers=[sidecar, main])), "mpi")

        assert end is not None
        assert (end.container, end.code) == ("mpi", 3)

    def test_is_told_by_another_container_where_the_main_one_ended_well(self) -> None:
        other, main = pods.ended("exporter", 1, at=22), pods.ended("mpi", 0, "Completed", at=20)

        end = launcher_end(read_pod(pods.launcher(phase="Failed", containers=[other, main])), "mpi")

        assert end is not None
        assert (end.container, end.code) == ("exporter", 1)

    def test_is_not_told_by_a_native_sidecar(self) -> None:
        body = pods.launcher(
            phase="Failed", containers=[], inits=[pods.ended("istio-proxy", 143, at=22)], spec=SIDECAR
        )

        end = launcher_end(read_pod(body), "mpi")

        assert end is not None
        assert end.how is How.FAILED

    @UNKNOWN
    def test_by_a_restart_of_its_node_is_its_loss(self, code: int, reason: str) -> None:
        lost = pods.ended("mpi", code, reason, message="The container could not be located", at=20)

        end = launcher_end(read_pod(pods.launcher(phase="Failed", containers=[lost])), "mpi")

        assert end is not None
        assert (end.how, end.node, end.code, end.reason) == (How.NODE_LOST, "node-1", code, reason)

    def test_with_the_code_of_a_lost_one_is_its_own_all_the_same(self) -> None:
        failed = pods.launcher(phase="Failed", containers=[pods.ended("mpi", 255, at=20)])

        end = launcher_end(read_pod(failed), "mpi")

        assert end is not None
        assert (end.how, end.code) == (How.EXITED, 255)

    def test_that_is_good_is_known_without_a_container(self) -> None:
        end = launcher_end(read_pod(pods.launcher(phase="Succeeded", containers=[])), "mpi")

        assert end is not None
        assert (end.how, end.code) == (How.EXITED, 0)


class TestWhyAPodIsNotReady:
    @pytest.mark.parametrize(
        ("sidecar", "main", "said"),
        [
            pytest.param(
                pods.running("istio-proxy"),
                pods.waiting("main", "ImagePullBackOff"),
                "train-worker-0: container main: ImagePullBackOff: image mpi:4 can't be pulled",
                id="an image that can't be pulled comes before a sidecar that runs",
            ),
            pytest.param(
                pods.running("istio-proxy"),
                pods.waiting("main", "PodInitializing"),
                "train-worker-0 is starting on node node-1",
                id="a sidecar that runs is no reason",
            ),
            pytest.param(
                pods.running("istio-proxy", ready=False),
                pods.running("main"),
                "train-worker-0: init container istio-proxy runs but is not Ready",
                id="a sidecar whose probe fails is one",
            ),
        ],
    )
    def test_beside_a_sidecar(self, sidecar: Body, main: Body, said: str) -> None:
        body = pods.worker(0, conditions=pods.not_ready(), inits=[sidecar], containers=[main], spec=SIDECAR)

        assert trouble(read_pod(body), "main").startswith(said)

    def test_the_main_containers_trouble_comes_before_that_of_others(self) -> None:
        body = pods.worker(
            0,
            conditions=pods.not_ready(),
            containers=[pods.waiting("a-shipper", "CrashLoopBackOff"), pods.waiting("main", "ErrImagePull")],
        )

        assert "container main: ImagePullBackOff" in trouble(read_pod(body), "main")


def test_the_cache_keeps_which_init_containers_are_sidecars() -> None:
    init: Body = {"name": "setup", "image": "setup"}
    body = pods.worker(0, spec={"initContainers": [init, *SIDECAR["initContainers"]]})

    kept = slim("Pod", body)

    assert kept["spec"] == {
        "nodeName": "node-1",
        "initContainers": [{"name": "istio-proxy", "restartPolicy": "Always"}],
    }
