"""What ends a job and what doesn't: a worker dies with its main container, and with nothing else of its pod."""

from __future__ import annotations

import pytest

from mpirt.controller.model.attempts import How
from mpirt.controller.observed.history import launcher_end, worker_death
from mpirt.controller.observed.pods import read_pod
from mpirt.controller.observed.slim import slim
from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, at

SIDECAR = {"initContainers": [{"name": "istio-proxy", "restartPolicy": "Always", "image": "proxy"}]}


# As containerd and the kubelet report a container that was lost by a restart of its node.
LOST_CONTAINERS = [(255, "Unknown"), (137, "ContainerStatusUnknown")]


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

    @pytest.mark.parametrize(
        ("containers", "died"),
        [
            pytest.param(
                [pods.restarted("a-shipper", 1, at=20), pods.restarted("main", 137, "OOMKilled", at=21)],
                (How.EXITED, "main", 137, "OOMKilled"),
                id="its main container, wherever it stands in the list",
            ),
            *(
                pytest.param(
                    [pods.restarted("main", code, "Completed", at=20)],
                    (How.EXITED, "main", code, "Completed"),
                    id=f"a container that was started again after code {code}",
                )
                for code in (0, 1, 143)
            ),
            *(
                pytest.param(
                    [pods.restarted("main", code, reason, at=20)],
                    (How.NODE_LOST, "main", code, reason),
                    id=f"a restart of its node, as {reason}",
                )
                for code, reason in LOST_CONTAINERS
            ),
        ],
    )
    def test_is_that_of(self, containers: list[Body], died: tuple[object, ...]) -> None:
        death = worker_death(read_pod(pods.worker(0, containers=containers)), "main", at(15))

        assert death is not None
        assert (death.how, death.container, death.code, death.reason) == died


def test_a_pod_that_was_gone_before_has_not_died_since() -> None:
    assert worker_death(read_pod(pods.worker(0), gone=at(10)), "main", at(15)) is None


class TestALaunchersEnd:
    @pytest.mark.parametrize(
        ("fields", "ended"),
        [
            pytest.param(
                {"containers": [pods.ended("a-sidecar", 143, at=22), pods.ended("mpi", 3, at=20)]},
                (How.EXITED, "mpi", 3),
                id="by its main container first",
            ),
            pytest.param(
                {"containers": [pods.ended("exporter", 1, at=22), pods.ended("mpi", 0, "Completed", at=20)]},
                (How.EXITED, "exporter", 1),
                id="by another container where the main one ended well",
            ),
            pytest.param(
                {"containers": [], "inits": [pods.ended("istio-proxy", 143, at=22)], "spec": SIDECAR},
                (How.FAILED, "", None),
                id="not by a native sidecar",
            ),
            pytest.param(
                {"containers": [pods.ended("mpi", 255, at=20)]},
                (How.EXITED, "mpi", 255),
                id="by its own code, which a lost one has as well",
            ),
            pytest.param(
                {"phase": "Succeeded", "containers": []},
                (How.EXITED, "", 0),
                id="without a container, if good",
            ),
            *(
                pytest.param(
                    {"containers": [pods.ended("mpi", code, reason, message="could not be located", at=20)]},
                    (How.NODE_LOST, "mpi", code),
                    id=f"by a restart of its node, as {reason}",
                )
                for code, reason in LOST_CONTAINERS
            ),
        ],
    )
    def test_is_known(self, fields: Body, ended: tuple[object, ...]) -> None:
        end = launcher_end(read_pod(pods.launcher(**{"phase": "Failed", **fields})), "mpi")

        assert end is not None
        assert (end.how, end.container, end.code, end.node) == (*ended, "node-1")


def test_the_cache_keeps_which_init_containers_are_sidecars() -> None:
    init: Body = {"name": "setup", "image": "setup"}
    body = pods.worker(0, spec={"initContainers": [init, *SIDECAR["initContainers"]]})

    kept = slim("Pod", body)

    assert kept["spec"] == {
        "nodeName": "node-1",
        "initContainers": [{"name": "istio-proxy", "restartPolicy": "Always"}],
    }
