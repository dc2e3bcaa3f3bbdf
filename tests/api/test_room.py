"""The largest number of workers that the controller allows, with the API server: it takes their names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from mpirt.controller.dialects.training_job import TRAINING
from mpirt.controller.main import keeper_files
from mpirt.controller.manifests.config_map import config_map
from mpirt.controller.model.conditions import JobStatus
from mpirt.controller.model.objectnames import worker_name
from mpirt.controller.model.roster import Change, Roster, Source
from mpirt.controller.model.spec import JobSpec, Settings
from mpirt.controller.scaling.room import with_room
from mpirt.errors import SpecError
from testbed.ground import Namespace
from tests.promises import promise
from tests.unit.controller.jobs import NOON
from tests.unit.controller.trainings import training_job

NAME = "a" * 44
WANTED = 10_000


def settings(padding: int = 0) -> Settings:
    """Those of an installation, with so many more bytes in the ConfigMap."""
    return Settings(runtime_image="", keepers={**keeper_files(), "padding": "AAAA" * (padding // 3)})


def parsed(namespace: Namespace, replicas: int, names: Sequence[str] = ()) -> JobSpec:
    """A job with that name and so many workers, or with these ones."""
    job = training_job(replicas=replicas, most=None)
    job["metadata"] |= {"name": NAME, "namespace": namespace.name}
    if names:
        job["status"] = {"targetWorkers": list(names), "scaling": {"highestNumber": 999_999}}
    return TRAINING.parse(job)


def most_of(namespace: Namespace, given: Settings) -> int:
    """How many workers there can be."""
    with pytest.raises(SpecError) as error:
        with_room(TRAINING, parsed(namespace, WANTED), given)
    return int(str(error.value).partition("at most ")[2].split()[0])


def longest(count: int) -> list[str]:
    """The names of so many workers, after many were replaced."""
    return [worker_name(NAME, 999_999 - number) for number in range(count)]


@promise(
    "The largest number of workers that a TrainingJob allows has room in ConfigMap and status.", of="TrainingJob"
)
def test_a_config_map_with_their_names_is_accepted_and_with_one_more_is_not(namespace: Namespace) -> None:
    # With this the ConfigMap is full before the status is.
    given = settings(padding=100_000)
    most = most_of(namespace, given)

    def created(count: int) -> str:
        body: dict[str, Any] = config_map(parsed(namespace, count, longest(count)), given.keepers)
        del body["metadata"]["ownerReferences"]
        return namespace.kubectl("create", "--filename=-", stdin=json.dumps(body), check=False).stderr

    assert "may not be more than 1048576 bytes" in created(most + 1)
    assert created(most) == ""


@promise(
    "The largest number of workers that a TrainingJob allows has room in ConfigMap and status.", of="TrainingJob"
)
def test_a_status_with_their_names_is_accepted_while_all_of_them_leave(namespace: Namespace) -> None:
    names = tuple(longest(most_of(namespace, settings())))
    job = training_job(replicas=1, most=None)
    job["metadata"] = {"name": NAME, "namespace": namespace.name}
    leaving = Roster(names, change=Change(Source.REPLICAS, NOON, leaving=names))
    status = TRAINING.write_status(JobStatus(roster=leaving, running=names), parsed(namespace, 1).key)
    namespace.kubectl.apply(job)
    patch = namespace.folder / "status.json"
    patch.write_text(json.dumps({"status": status}), encoding="utf-8")

    written = ("patch", f"trainingjob/{NAME}", "--subresource=status", "--type=merge", f"--patch-file={patch}")
    namespace.kubectl(*written)

    found = namespace.kubectl.get(f"trainingjob/{NAME}")["status"]
    assert len(found["scaling"]["change"]["leaving"]) == len(names)
