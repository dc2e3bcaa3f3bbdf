"""The control plane without nodes, and the requests that tests make to it without kubectl."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from testbed.ground import Namespace
from testbed.kube.errors import ClusterError
from testbed.kube.paths import PROJECT
from testbed.kube.wait import until

GONE_WITHIN = 20.0

# A run of its own: it has joined the plane in that folder, and waits.
RUN = """
import os, sys
from pathlib import Path
from testbed.plane import shared

made = shared.join(Path(sys.argv[1]), os.getpid())
assert made.is_ready()
print("joined", flush=True)
sys.stdin.read()
"""


def test_a_run_that_is_killed_leaves_no_process_of_its_plane(tmp_path: Path) -> None:
    folder = tmp_path / "plane"
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "joined\n"
        assert len(processes_of(folder)) >= 5

        run.kill()

    until(lambda: not processes_of(folder), within=GONE_WITHIN, what="the end of all processes")
    assert not (folder / "etcd").exists()


def processes_of(folder: Path) -> list[str]:
    """The command lines that name the folder, but for the run's own."""
    return [line for line in _command_lines() if f"{folder}" in line and RUN not in line]


def _command_lines() -> Iterator[str]:
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            yield (place / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")


QUESTIONS = [
    ("nodes",),
    ("ns", "default"),
    ("configmap", "it"),
    ("configmap", "it", "--show-managed-fields"),
    ("configmaps", "it", "other"),
    ("configmap/it",),
    ("configmap/it", "serviceaccount/default"),
    ("configmap/none", "--ignore-not-found"),
    ("cm,sa,jobs.batch,mpijobs.kubeflow.org", "--selector=a={namespace}"),
    ("all",),
    ("all,cm", "--selector=a={namespace}"),
    ("configmaps", "--field-selector=metadata.name=it"),
    ("configmaps", "--all-namespaces", "--selector=a={namespace}"),
    ("crd", "mpijobs.kubeflow.org"),
    ("mpijobs.v2beta1.kubeflow.org",),
    ("events",),
]


def shown(namespace: Namespace, *words: str) -> Any:
    """What kubectl shows."""
    text = namespace.kubectl("get", *words, "--output=json").stdout
    found = json.loads(text) if text else []
    return found["items"] if isinstance(found, dict) and found["kind"].endswith("List") else found


@pytest.mark.parametrize("words", QUESTIONS, ids=" ".join)
def test_an_answer_is_the_one_of_kubectl(namespace: Namespace, words: tuple[str, ...]) -> None:
    words = tuple(word.format(namespace=namespace.name) for word in words)
    # No other namespace has them: one of a test before this one may be on its way out.
    labels = {"a": namespace.name}
    for name in ("it", "other"):
        metadata = {"name": name, "labels": labels}
        namespace.kubectl.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": "v"}}
        )

    assert namespace.kubectl.get(*words) == shown(namespace, *words)


def made(namespace: Namespace, name: str) -> Any:
    """The part of an object that does not tell when, how and by whom it was made."""
    found = namespace.kubectl.get("mpijob", name)
    found["metadata"] = {key: found["metadata"].get(key) for key in ("annotations", "labels", "namespace")}
    return json.loads(json.dumps(found).replace(name, "it"))


def test_an_object_that_is_made_is_the_one_that_kubectl_makes_and_changes(namespace: Namespace) -> None:
    kubectl = namespace.kubectl

    def job(name: str, labels: dict[str, str]) -> dict[str, Any]:
        replicas = {"Worker": {"replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}}
        return {
            "apiVersion": "kubeflow.org/v1",
            "kind": "MPIJob",
            "metadata": {"name": name, "labels": labels},
            "spec": {"mpiReplicaSpecs": replicas},
        }

    kubectl.apply(job("ours", {"a": "b", "c": "d"}))
    kubectl("apply", "--filename=-", stdin=json.dumps(job("theirs", {"a": "b", "c": "d"})))
    assert made(namespace, "ours") == made(namespace, "theirs")

    kubectl.apply(job("ours", {"a": "e"}))
    assert kubectl.get("mpijob", "ours")["metadata"]["labels"] == {"a": "e"}


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        (("configmap", "none"), ClusterError, r"NotFound.*configmaps .none. not found"),
        (("unicorns",), ClusterError, 'doesn\'t have a resource type "unicorns"'),
        (("pods", "--watch"), ValueError, "--watch is not known here"),
    ],
    ids=["an object that is missing", "a kind that is not there", "words that only kubectl knows"],
)
def test_what_has_no_answer_is_an_error(
    jobs: Namespace, words: tuple[str, ...], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        jobs.kubectl.get(*words)
