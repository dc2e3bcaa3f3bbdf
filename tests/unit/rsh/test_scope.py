"""Which label selector covers the pods of a job."""

from __future__ import annotations

import pytest

from mpirt.rsh.pod.scope import given_scope, scope_of


@pytest.mark.parametrize(
    ("labels", "selector"),
    [
        ({"mpirt.dev/job": "a", "job-name": "b"}, "mpirt.dev/job=a"),
        ({"training.kubeflow.org/job-name": "a", "app": "x"}, "training.kubeflow.org/job-name=a"),
        ({"mpi-job-name": "a"}, "mpi-job-name=a"),
        (
            {"batch.kubernetes.io/job-name": "a-workers-0", "jobset.sigs.k8s.io/jobset-name": "a"},
            "jobset.sigs.k8s.io/jobset-name=a",
        ),
        ({"batch.kubernetes.io/job-name": "a", "job-name": "a"}, "batch.kubernetes.io/job-name=a"),
        ({"job-name": "a"}, "job-name=a"),
        ({"app": "x"}, ""),
        ({}, ""),
    ],
)
def test_a_pod_names_its_job(labels: dict[str, str], selector: str) -> None:
    assert scope_of({"metadata": {"labels": labels}}) == selector


@pytest.mark.parametrize(
    ("environ", "selector"),
    [({"MPIRT_SELECTOR": " app=x "}, "app=x"), ({"MPIRT_SELECTOR": " "}, None), ({"MPIRT_JOB": "a"}, None)],
)
def test_the_environment_may_name_the_selector(environ: dict[str, str], selector: str | None) -> None:
    assert given_scope(environ) == selector
