"""The job of a launcher pod, as far as it can be known without asking."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpirt.discover.job import job_at_hand, own_pod, parse_labels
from mpirt.discover.options import Selection
from mpirt.errors import UsageError


def test_labels_are_read_as_the_downward_api_writes_them() -> None:
    text = 'app="x"\nmpirt.dev/job="train"\nempty=""\n\nnonsense\n'

    assert parse_labels(text) == {"app": "x", "mpirt.dev/job": "train", "empty": ""}


class TestTheJob:
    def test_stands_in_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "labels").write_text('mpirt.dev/job="train"\n')
        path = str(tmp_path / "labels")

        found = job_at_hand({"MPIRT_POD_LABELS": path}, "")

        assert found == Selection(f"{path}: mpirt.dev/job train", ("mpirt.dev/job=train",))

    def test_stands_in_the_host_name_that_mpi_operator_gives(self) -> None:
        found = job_at_hand({"K_MPI_JOB_ROLE": "launcher"}, "train-launcher")

        assert found is not None
        assert found.selectors == ("training.kubeflow.org/job-name=train",)

    @pytest.mark.parametrize(
        ("environ", "host"),
        [
            ({}, "train-launcher"),
            ({"K_MPI_JOB_ROLE": "worker"}, "a-launcher"),
            ({"K_MPI_JOB_ROLE": "launcher"}, "a"),
        ],
    )
    def test_may_stand_in_the_pod_only(self, environ: dict[str, str], host: str) -> None:
        assert job_at_hand({**environ, "MPIRT_POD_LABELS": "/nowhere"}, host) is None

    def test_is_not_known_outside_of_a_pod(self) -> None:
        with pytest.raises(UsageError, match=r"no job: not in a launcher pod .*; name it with --job"):
            job_at_hand({"MPIRT_POD_LABELS": "/nowhere"}, "")


def test_there_is_no_own_pod_outside_of_a_cluster() -> None:
    assert own_pod({}) == ""
    assert own_pod({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}) != ""
