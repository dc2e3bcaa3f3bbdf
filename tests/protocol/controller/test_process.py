"""The controller as a process: crashes, an API server that is away, other namespaces, a missing keeper."""

from __future__ import annotations

import shutil
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from mpirt import keeper
from testbed.kube.wait import until
from tests.apiserver.objects import ObjectServer
from tests.apiserver.storage import Place
from tests.protocol.controller.process import (
    JOB,
    MADE,
    WITHIN,
    Start,
    condition,
    job,
    made,
    wait_until_made,
)
from tests.unit.layers import PROJECT

# A ConfigMap, an account, a Service, a StatefulSet, an event, the status.
WRITES = 6


# By a controller without a lease each; tests/api kills one after every kind of write, too.
@pytest.mark.sample(1)
@pytest.mark.parametrize("write", range(1, WRITES + 1))
def test_the_next_one_brings_about_the_same(server: ObjectServer, start: Start, write: int) -> None:
    server.stick_at(write)
    controller = start("--no-lease")
    server.storage.create(JOB, job())
    assert server.stuck.wait(WITHIN)
    controller.kill()
    server.stick_at(None)

    start("--no-lease")
    wait_until_made(server)

    assert made(server) == {plural: names for plural, names in made(server).items() if len(names) == 1}
    assert len(server.storage.names("events")) == 1
    assert conditions(server) == {
        "Created": ("True", "MPIJobCreated"),
        "Running": ("False", "MPIJobWorkersNotReady"),
    }


def conditions(server: ObjectServer) -> dict[str, tuple[str, str]]:
    found: list[dict[str, Any]] = server.storage.get(JOB)["status"]["conditions"]
    return {each["type"]: (each["status"], each["reason"]) for each in found}


def test_all_that_a_job_is_made_of_is_made_once(server: ObjectServer, start: Start) -> None:
    start("--no-lease")
    server.storage.create(JOB, job())

    wait_until_made(server)

    writes = server.asked(but=frozenset({"get", "list", "watch"}))
    assert sorted(writes) == sorted(
        [("create", plural) for plural in MADE]
        # Both templates are tried first; the launcher is not made yet.
        + [("create", "jobs"), ("create", "statefulsets"), ("create", "events"), ("patch", "mpijobs/status")]
    )


def test_a_server_that_goes_away_and_comes_back_finds_the_controller_at_work(
    server: ObjectServer, start: Start
) -> None:
    controller = start("--no-lease")
    controller.wait_until_it_says("acting")
    server.away = True
    controller.wait_until_it_says("watch interrupted")
    server.storage.create(JOB, job())

    server.away = False

    wait_until_made(server)


def test_a_version_that_has_expired_is_followed_by_a_list(server: ObjectServer, start: Start) -> None:
    controller = start("--no-lease")
    controller.wait_until_it_says("acting")
    server.storage.create(JOB, job())
    server.storage.expire()

    wait_until_made(server)
    assert "watch interrupted" not in controller.said()


def test_a_job_nested_more_deeply_than_python_cares_to_read_keeps_no_other_waiting(
    server: ObjectServer, start: Start
) -> None:
    levels = 3 * sys.getrecursionlimit()
    server.texts["deep"] = '{"deeper":' * levels + "0" + "}" * levels
    server.storage.create(Place("mpijobs", "ml", "other"), {**job(unknown="deep"), "metadata": {"name": "other"}})
    server.storage.create(JOB, job())

    start("--no-lease")

    until(
        lambda: all(set(names) < set(made(server)[plural]) for plural, names in MADE.items()),
        within=WITHIN,
        what="the objects of both jobs",
        instead=lambda: made(server),
    )


def test_a_write_that_fails_is_tried_again(server: ObjectServer, start: Start) -> None:
    server.refuse("create", "services", 500, "InternalError", "etcd is away", times=2)
    server.refuse("create", "serviceaccounts", 429, "TooManyRequests", "later", retryAfterSeconds=1)
    start("--no-lease")
    server.storage.create(JOB, job())

    wait_until_made(server)


def test_a_launcher_that_the_server_refuses_is_said_and_not_asked_again(
    server: ObjectServer, start: Start
) -> None:
    said = 'Job.batch "train-launcher" is invalid: spec.template.spec.containers[0].image: Required value'
    field = {"field": "spec.template.spec.containers[0].image", "message": "Required value"}
    server.refuse("create", "jobs", 422, "Invalid", said, times=100, causes=[field])
    start("--no-lease")
    server.storage.create(JOB, job())

    def is_told() -> bool:
        return bool(condition(server, "Running").get("reason") == "MPIJobFailedValidation")

    until(is_told, within=WITHIN, what="the condition Running with the reason")

    assert said in condition(server, "Running")["message"]
    assert condition(server, "Failed") == {}
    assert not any(made(server).values())
    assert server.asked().count(("create", "jobs")) == 1


NAMESPACES = ("ml", "vision")


def names(plural: str, *namespaces: str) -> list[str]:
    return [f"{namespace}/{MADE[plural][0].partition('/')[2]}" for namespace in namespaces]


def objects(server: ObjectServer, namespace: str) -> dict[str, Any]:
    """What a job is made of in a namespace, as it is."""
    found = {}
    for plural in MADE:
        [name] = names(plural, namespace)
        found[plural] = server.storage.get(Place(plural, *name.split("/")))
    return found


def test_each_has_its_own_objects_and_what_happens_to_one_is_nothing_to_the_other(
    server: ObjectServer, start: Start
) -> None:
    places = [Place("mpijobs", namespace, "train") for namespace in NAMESPACES]
    jobs = [server.storage.create(place, job()) for place in places]
    start("--no-lease")
    everything = {plural: names(plural, *NAMESPACES) for plural in MADE}
    until(lambda: made(server) == everything, within=WITHIN, what="the objects of both")
    others = objects(server, "vision")

    server.storage.change(places[0], lambda body: body["spec"].update(runPolicy={"suspend": True}))

    until(
        lambda: made(server)["statefulsets"] == ["vision/train-worker"],
        within=WITHIN,
        what="the workers of the one to go, and only those",
    )
    assert objects(server, "vision") == others
    assert {body["metadata"]["ownerReferences"][0]["uid"] for body in others.values()} == {
        jobs[1]["metadata"]["uid"]
    }


CONFIG = Place("configmaps", "ml", "train-config")


def files(server: ObjectServer) -> dict[str, bytes]:
    binary = server.storage.get(CONFIG).get("binaryData", {})
    return {name: b64decode(text, validate=True) for name, text in binary.items()}


def test_workers_get_what_is_installed_and_keep_it(server: ObjectServer, start: Start) -> None:
    server.storage.create(JOB, job())
    controller = start("--no-lease")
    wait_until_made(server)
    installed = {path.name: path.read_bytes() for path in (PROJECT / "mpirt/keeper").glob("keeper-*")}
    assert files(server) == installed

    server.storage.change(CONFIG, lambda body: body["binaryData"].update({"keeper-1-amd64": "AAAA"}))

    until(lambda: files(server) == installed, within=WITHIN, what="the file to be put right")
    assert "keeper not installed" not in controller.said()


def test_jobs_without_a_keeper_run_and_that_is_reported_once(
    server: ObjectServer, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ignored = shutil.ignore_patterns("keeper-*", "__pycache__")
    shutil.copytree(PROJECT / "mpirt", tmp_path / "without/mpirt", ignore=ignored)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "without"))
    server.storage.create(JOB, job())

    controller = start("--no-lease")

    wait_until_made(server)
    assert files(server) == {}
    missing = ",".join(keeper.file_name(one) for one in keeper.ARCHITECTURES)
    said = "keeper not installed; in workers without a place for it no command can be started"
    line = f'level=warning message="{said}" missing={missing}'
    assert controller.said().count(line) == 1
