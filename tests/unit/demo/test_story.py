"""The demo on a cluster of somebody else's: what it does there, what it says, and what it leaves."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.unit.demo.story import HAPPY, NAMED, Stage, items, job

Happy = tuple[Stage, subprocess.CompletedProcess[str]]

REMOVE = "kubectl --context=prod --namespace=default delete namespace"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path)
    made.kubectl(HAPPY)
    return made


@pytest.fixture(scope="module")
def happy(tmp_path_factory: pytest.TempPathFactory) -> Happy:
    """A demo that came to its end, and what it printed."""
    made = Stage(tmp_path_factory.mktemp("happy"))
    made.kubectl(HAPPY)
    return made, made.run(**NAMED)


def namespaces(calls: list[str], verb: str) -> list[str]:
    words = f"{verb} namespace "
    return [call.partition(words)[2].split()[0] for call in calls if words in call]


class TestToItsEnd:
    def test_the_story_says_on_which_pod_and_node_each_rank_ran(self, happy: Happy) -> None:
        done = happy[1]

        assert done.returncode == 0
        assert done.stdout.splitlines()[-6:-2] == [
            "RANK  POD          NODE",
            "0     pi-worker-0  node-1",
            "1     pi-worker-1  node-2",
            "",
        ]

    def test_the_demo_stays_in_the_context_that_was_current_and_removes_what_it_made(self, happy: Happy) -> None:
        calls = happy[0].calls()
        asked, *then = (happy[0].root / "calls").read_text(encoding="utf-8").splitlines()

        assert (asked, {call.split()[0] for call in then}) == ("config current-context", {"--context=prod"})
        [made] = namespaces(calls, "create")
        assert namespaces(calls, "delete") == [made]
        assert [call for call in calls if " delete " in call and "namespace" not in call] == []
        # A CRD that is there stays as it is.
        assert [call for call in calls if "apply --kustomize" in call] == []

    def test_the_demo_removes_nothing_that_is_to_be_kept(self, stage: Stage) -> None:
        done = stage.run(KEEP="yes", **NAMED)

        [made] = namespaces(stage.calls(), "create")
        assert f"To remove it: {REMOVE} {made}\n" in done.stdout
        assert namespaces(stage.calls(), "delete") == []

    def test_a_crd_that_is_missing_is_made(self, stage: Stage) -> None:
        stage.kubectl(HAPPY, **{"get crd": "exit 1"})

        done = stage.run(**NAMED)

        assert "the CRD mpijobs.kubeflow.org, which stays" in done.stderr
        assert len([call for call in stage.calls() if "apply --kustomize" in call]) == 1


class TestWhenItCannot:
    def test_the_demo_without_images_says_what_to_push_and_does_nothing(self, stage: Stage) -> None:
        done = stage.run()

        assert done.returncode == 2
        assert "docker push registry.example.com/mpirt/runtime:demo" in done.stdout
        assert {call.partition("--namespace=default ")[2] or call for call in stage.calls()} == {
            "config current-context",
            "config view --minify --output=jsonpath={.clusters[0].cluster.server}",
        }

    def test_the_demo_without_a_context_says_so(self, stage: Stage) -> None:
        stage.kubectl(HAPPY, **{"config current-context": "exit 1"})

        done = stage.run(**NAMED)

        assert (done.returncode, done.stderr) == (
            1,
            "error: kubectl has no current context\n  choose one: kubectl config use-context NAME\n",
        )

    def test_beside_a_controller_of_all_namespaces_it_does_nothing(self, stage: Stage) -> None:
        other = {
            "metadata": {"name": "mpi-operator", "namespace": "kubeflow"},
            "spec": {"template": {"spec": {"containers": [{}]}}},
        }
        stage.kubectl({**HAPPY, "get deployments": items(other)})

        done = stage.run(**NAMED)

        assert done.returncode == 1
        assert "mpi-operator in namespace kubeflow acts on the MPIJobs of all namespaces" in done.stderr
        assert namespaces(stage.calls(), "create") == []

    def test_a_controller_that_does_not_start_is_removed_and_its_pods_are_shown(self, stage: Stage) -> None:
        waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
        pod = {"status": {"containerStatuses": [{"state": waiting}]}}
        stage.kubectl({"get pods --output": items(pod), **HAPPY, "get pods": "NAME READY"}, rollout="exit 1")

        done = stage.run(**NAMED)

        assert done.returncode == 1
        assert "NAME READY\nImagePullBackOff: no such image" in done.stderr
        assert len(namespaces(stage.calls(), "delete")) == 1

    def test_a_job_that_fails_is_told_in_the_controllers_words(self, stage: Stage) -> None:
        stage.kubectl({**HAPPY, "get mpijob pi": job("Failed", "launcher pi-launcher-x: exit code 9")})

        done = stage.run(**NAMED)

        assert (done.returncode, done.stderr.splitlines()[-2:]) == (
            1,
            [
                "error: the job has failed: launcher pi-launcher-x: exit code 9",
                "  to look at it, run the demo again with KEEP=yes",
            ],
        )
        assert len(namespaces(stage.calls(), "delete")) == 1

    @pytest.mark.parametrize("at", ["rollout", "logs"])
    def test_interrupted_it_removes_what_it_has_made_and_says_so(self, at: str, stage: Stage) -> None:
        stage.kubectl(HAPPY, **{at: stage.stops_here(at)})

        done = stage.interrupted(at, **NAMED)

        [made] = namespaces(stage.calls(), "create")
        assert done.returncode == 130
        assert done.stdout.endswith(f"Namespace {made} is being removed.\n")
        assert done.stderr.endswith("interrupted\n")
        assert namespaces(stage.calls(), "delete") == [made]

    def test_an_object_that_could_not_be_removed_is_named(self, stage: Stage) -> None:
        stage.kubectl(HAPPY, **{"delete namespace": "echo no way >&2; exit 1"})

        done = stage.run(**NAMED)

        [made] = namespaces(stage.calls(), "create")
        assert f"Namespace {made} could not be removed: no way\n" in done.stdout
        assert f"To remove it: {REMOVE} {made}\n" in done.stdout
