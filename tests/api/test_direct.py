"""Objects that tests read themselves are those that kubectl shows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kube.errors import ClusterError
from tests.support.ground import Namespace

QUESTIONS = [
    ("nodes",),
    ("ns", "default"),
    ("configmap", "it"),
    ("configmap", "it", "--show-managed-fields"),
    ("configmaps", "it", "other"),
    ("configmap/it",),
    ("configmap/it", "serviceaccount/default"),
    ("configmap/none", "--ignore-not-found"),
    ("cm,sa,jobs.batch,mpijobs.kubeflow.org", "--selector=a=b"),
    ("all",),
    ("all,cm", "--selector=a=b"),
    ("configmaps", "--field-selector=metadata.name=it"),
    ("configmaps", "--all-namespaces", "--selector=a=b"),
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
    labels = {"a": "b"}
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


def test_what_is_not_there_is_an_error_that_names_it(jobs: Namespace) -> None:
    with pytest.raises(ClusterError, match=r"NotFound.*configmaps .none. not found"):
        jobs.kubectl.get("configmap", "none")


def test_a_kind_that_is_not_there_is_an_error(jobs: Namespace) -> None:
    with pytest.raises(ClusterError, match='doesn\'t have a resource type "unicorns"'):
        jobs.kubectl.get("unicorns")


def test_words_that_only_kubectl_knows_are_an_error(jobs: Namespace) -> None:
    with pytest.raises(ValueError, match="--watch is not known here"):
        jobs.kubectl.get("pods", "--watch")
