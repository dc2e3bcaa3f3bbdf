"""What people and tools do to a job's objects without meaning harm: it is put right, and nothing ends for it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, container, template
from tests.unit.controller.world import World, settled, started, writes

TEMPLATE, WORKERS, GENERATION = "mpirt.dev/template", "mpirt.dev/workers", "mpirt.dev/generation"


def change_template(world: World, role: str, **fields: Any) -> None:
    main = {"Launcher": "mpi", "Worker": "worker"}[role]
    world.job["spec"]["mpiReplicaSpecs"][role]["template"] = template(container(main, **fields))


class TestAStrippedAnnotation:
    @pytest.mark.parametrize(
        ("kind", "annotation"),
        [
            pytest.param("Job", TEMPLATE, id="the launcher's digest"),
            pytest.param("Job", WORKERS, id="the workers' digest, on the launcher Job"),
            pytest.param("StatefulSet", TEMPLATE, id="the workers' digest"),
            pytest.param("StatefulSet", GENERATION, id="the generation"),
        ],
    )
    def test_is_written_again_and_nothing_else_happens(self, kind: str, annotation: str) -> None:
        world = started()
        before = dict(world.get(kind)["metadata"]["annotations"])
        uid, generation = world.get(kind)["metadata"]["uid"], world.get(kind)["metadata"]["generation"]

        del world.get(kind)["metadata"]["annotations"][annotation]
        done = world.settle()

        assert writes(done) == [f"patch {kind}"]
        assert world.get(kind)["metadata"]["annotations"] == before
        assert (world.get(kind)["metadata"]["uid"], world.get(kind)["metadata"]["generation"]) == (uid, generation)
        assert world.state() == "Running"

    @pytest.mark.parametrize("kind", ["Job", "StatefulSet"])
    def test_is_written_again_together_with_all_others(self, kind: str) -> None:
        world = started()
        before = dict(world.get(kind)["metadata"]["annotations"])

        del world.get(kind)["metadata"]["annotations"]

        assert writes(world.settle()) == [f"patch {kind}"]
        assert world.get(kind)["metadata"]["annotations"] == before

    def test_does_not_hide_that_the_launchers_template_was_changed(self) -> None:
        world = started()

        del world.get("Job")["metadata"]["annotations"]
        change_template(world, "Launcher", command=["other"])

        assert "delete Job" in writes(world.settle())
        assert world.condition("Restarting")[2] == "the launcher's template was changed"

    def test_does_not_hide_that_the_workers_template_was_changed(self) -> None:
        world = started()

        del world.get("Job")["metadata"]["annotations"]
        del world.get("StatefulSet")["metadata"]["annotations"]
        change_template(world, "Worker", image="mpi:5")
        done = writes(world.settle())

        assert done.index("patch StatefulSet") < done.index("delete Job")
        assert world.condition("Restarting")[2] == "the workers' template was changed"


class TestAnotherVersionOfTheCrd:
    """Objects name the version that is served, or Kubernetes' garbage collector does not find their owner."""

    KINDS = ("ConfigMap", "ServiceAccount", "Service", "StatefulSet", "Role", "RoleBinding", "Job")

    @staticmethod
    def serve(world: World, version: str) -> None:
        world.job["apiVersion"] = version

    def versions(self, world: World) -> set[str]:
        return {world.get(kind)["metadata"]["ownerReferences"][0]["apiVersion"] for kind in self.KINDS}

    @pytest.mark.parametrize("is_over", [False, True], ids=["running", "finished"])
    def test_is_named_by_all_objects_of_a_job(self, *, is_over: bool) -> None:
        world = started()
        if is_over:
            world.finish(succeeded=1)

        self.serve(world, "kubeflow.org/v1")

        assert sorted(writes(world.settle())) == sorted(f"patch {kind}" for kind in self.KINDS)
        assert self.versions(world) == {"kubeflow.org/v1"}
        assert writes(world.settle()) == []


class TestACopyOfAPod:
    """As `kubectl debug --copy-to` makes it with its labels: without an owner, under the name that it is given."""

    @staticmethod
    def copy_of(pod: Body, name: str) -> Body:
        pod["metadata"] |= {"name": name, "uid": f"uid-of-{name}", "ownerReferences": []}
        del pod["metadata"]["generateName"]
        return pod

    def test_of_the_launcher_does_not_hold_the_next_launcher_back_and_is_left_alone(self) -> None:
        world = started()
        world.launcher_is()
        world.put(self.copy_of(pods.launcher(), "train-launcher-debug"))
        world.lose_launcher_job()

        done = world.settle()

        assert "delete Pod" not in writes(done)
        assert world.get("Job")["spec"]["parallelism"] == 1

    def test_of_a_worker_is_no_worker_that_others_wait_for(self) -> None:
        world = settled()
        world.put(self.copy_of(pods.worker(0), "train-worker-0-debug"))
        del world.objects["StatefulSet", "train-worker"]

        world.settle()

        assert world.get("StatefulSet")["metadata"]["annotations"]["mpirt.dev/earlier-workers"] == "gone"

    def test_with_the_name_of_a_worker_is_waited_for_as_it_stands_in_the_way(self) -> None:
        world = World()
        world.put(self.copy_of(pods.worker(1), "train-worker-1"))

        world.settle()

        assert world.get("StatefulSet")["metadata"]["annotations"]["mpirt.dev/earlier-workers"] == "ending"
