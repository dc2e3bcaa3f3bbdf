"""A job has at most as many workers as have their names in its objects; one that wants more is invalid at once."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.dialects.training_job import TRAINING
from mpirt.controller.manifests.config_map import config_map
from mpirt.controller.model.roster import Source
from mpirt.controller.model.spec import Elastic, Settings
from mpirt.controller.observed.nodes import Signal
from mpirt.controller.scaling.room import MOST_DATA, MOST_NAMES, with_room
from mpirt.errors import SpecError
from tests.unit.controller.jobs import SETTINGS, Body, mpi_job
from tests.unit.controller.trainings import TrainingWorld, training_job
from tests.unit.controller.world import World

LONG = "a" * 44
FIELD = "spec.etReplicaSpecs.worker.replicas"


def named(body: Body, name: str) -> Body:
    body["metadata"]["name"] = name
    return body


def training(replicas: int, name: str = LONG, **fields: Any) -> Body:
    return named(training_job(replicas=replicas, most=None, **fields), name)


def limit_of(name: str, settings: Settings = SETTINGS, **fields: Any) -> tuple[int, str]:
    """The largest number of workers with this name, and what is said of more."""
    with pytest.raises(SpecError) as error:
        with_room(TRAINING, TRAINING.parse(training(10_000, name, **fields)), settings)
    return int(str(error.value).partition("at most ")[2].split()[0]), str(error.value)


class TestAJobWithTooManyWorkers:
    def test_is_invalid_at_once_with_the_number_that_there_can_be(self) -> None:
        world = World(training(10_000), dialect=TRAINING)
        done = world.settle()

        assert [action.kind for action in done] == ["Event", "Event", "TrainingJob"]
        assert world.condition("Running")[2] == (
            f"{FIELD}: must be at most 7158 with a job name of 44 characters, got 10000: "
            "the job's status holds the names of all workers; a shorter metadata.name has room for more"
        )

    def test_may_have_as_many_as_it_says(self) -> None:
        most, _ = limit_of(LONG)

        with_room(TRAINING, TRAINING.parse(training(most)), SETTINGS)
        with pytest.raises(SpecError, match=f"must be at most {most} "):
            with_room(TRAINING, TRAINING.parse(training(most + 1)), SETTINGS)

    def test_is_limited_by_its_config_map_where_that_is_smaller(self) -> None:
        keepers = {"keeper-1-amd64": "A" * 4 * 100_000}

        most, message = limit_of(LONG, Settings(runtime_image="", keepers=keepers))

        assert most < 7158
        assert "one ConfigMap holds the names of all workers" in message

    def test_with_a_short_name_has_room_for_ten_thousand(self) -> None:
        spec = with_room(TRAINING, TRAINING.parse(training(10_000, "a" * 20)), SETTINGS)

        assert spec.workers.replicas == 10_000

    def test_is_no_mpi_job_whatever_its_name(self) -> None:
        job = named(mpi_job(replicas=10_000, slotsPerWorker=2**31 - 1), "a" * 45)
        keepers = {"keeper-1-amd64": "A" * 4 * 33_000}

        spec = MPI_JOB.parse(job)

        assert with_room(MPI_JOB, spec, Settings(runtime_image="", keepers=keepers)) is spec

    def test_has_some(self) -> None:
        job = mpi_job()
        del job["spec"]["mpiReplicaSpecs"]["Worker"]
        spec = MPI_JOB.parse(job)

        assert with_room(MPI_JOB, spec, SETTINGS) is spec


@pytest.mark.uncounted
class TestTheLimit:
    @pytest.mark.parametrize("slots", [1, 100_000])
    def test_of_the_config_map_is_what_is_written_to_the_last_byte(self, slots: int) -> None:
        most, _ = limit_of(LONG, padded(400_000), slotsPerWorker=slots)
        room = MOST_DATA - data_of(training(most, slotsPerWorker=slots), padded(400_000))

        assert room >= 0
        assert limit_of(LONG, padded(400_000 + room), slotsPerWorker=slots)[0] == most
        assert limit_of(LONG, padded(400_000 + room + 1), slotsPerWorker=slots)[0] == most - 1

    def test_of_the_status_is_what_is_written_of_workers_that_all_leave(self) -> None:
        most, _ = limit_of(LONG)
        names = [f"{LONG}-worker-{number}" for number in range(999_999 - most, 999_999)]

        written = json.dumps([names] * 3, separators=(",", ":"))

        assert len(written) < MOST_NAMES < len(written) + 2 * len(names[0]) * 3 + 1500


def padded(size: int) -> Settings:
    """Settings whose files take so many bytes in each ConfigMap."""
    return Settings(runtime_image="", keepers={"keeper-1-amd64": b64encode(bytes(size)).decode()})


def data_of(body: Body, settings: Settings) -> int:
    """The bytes that Kubernetes counts in a ConfigMap, of a job whose workers have all been replaced often."""
    spec = TRAINING.parse(body)
    made = config_map(spec, settings.keepers)
    digits = sum(6 - len(name.rpartition("-")[2]) for name in spec.workers.names)
    binary = sum(len(text) // 4 * 3 - text.count("=") for text in made["binaryData"].values())
    text = sum(len(value) for value in made["data"].values())
    return int(text + binary + 2 * digits)


class TestASmallJob:
    def test_can_be_scaled_out_to_that_many(self) -> None:
        most, _ = limit_of(LONG)

        spec = with_room(TRAINING, TRAINING.parse(training(2)), SETTINGS)

        assert spec.workers.elastic == Elastic(1, most)

    def test_can_be_scaled_out_to_less_with_a_limit_of_its_own(self) -> None:
        spec = TRAINING.parse(named(training_job(most=9), LONG))

        assert with_room(TRAINING, spec, SETTINGS) is spec


class TestDrains:
    def test_of_many_workers_begin_as_far_as_the_status_has_room(self) -> None:
        world = TrainingWorld(training_job(replicas=80, least=1, most=None))
        world.settle()
        world.ready()
        world.nodes["node-1"] = Signal(Source.NODE_TAINT, "has the taint " + "x" * 20_000, 120)

        world.settle()

        assert 0 < len(world.status["scaling"]["drains"]) < 80
        assert len(json.dumps(world.status, separators=(",", ":"))) < 1536 * 1024
