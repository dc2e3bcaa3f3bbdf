"""Objects that tests read themselves are those that kubectl shows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from testbed.ground import Namespace
from testbed.kube.errors import ClusterError

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
        namespace.kubectl.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "labels": labels},
                "data": {"k": "v"},
            }
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


def test_a_missing_object_is_an_error_that_names_it(jobs: Namespace) -> None:
    with pytest.raises(ClusterError, match=r"NotFound.*configmaps .none. not found"):
        jobs.kubectl.get("configmap", "none")


def test_a_kind_that_is_not_there_is_an_error(jobs: Namespace) -> None:
    with pytest.raises(ClusterError, match='doesn\'t have a resource type "unicorns"'):
        jobs.kubectl.get("unicorns")


def test_words_that_only_kubectl_knows_are_an_error(jobs: Namespace) -> None:
    with pytest.raises(ValueError, match="--watch is not known here"):
        jobs.kubectl.get("pods", "--watch")
