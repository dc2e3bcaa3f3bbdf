"""An API server that is away, forgets, or refuses."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from testbed.kube.wait import until
from tests.apiserver.objects import ObjectServer
from tests.apiserver.storage import Place
from tests.protocol.controller.process import JOB, MADE, WITHIN, Controller, condition, job, made, wait_until_made

Start = Callable[..., Controller]


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


@pytest.mark.full("tests/unit/controller/decisions/test_lives.py: test_an_object_of_somebody_elses...")
def test_an_object_of_the_name_that_belongs_to_somebody_else_is_left_alone(
    server: ObjectServer, start: Start
) -> None:
    theirs = Place("services", "ml", "train")
    before = server.storage.create(theirs, {"kind": "Service", "metadata": {"name": "train"}, "spec": {"a": 1}})
    start("--no-lease")
    server.storage.create(JOB, job())

    until(
        lambda: "ErrResourceExists" in str(server.storage.get(JOB).get("status")),
        within=WITHIN,
        what="ErrResourceExists in the status",
    )

    assert server.storage.get(theirs) == before


@pytest.mark.full("tests/unit/controller/decisions/test_lives.py: TestWhatIsDeletedComesBack")
def test_a_deleted_object_comes_back(server: ObjectServer, start: Start) -> None:
    start("--no-lease")
    server.storage.create(JOB, job())
    wait_until_made(server)

    for plural, [name] in MADE.items():
        server.storage.delete(Place(plural, *name.split("/")))

    wait_until_made(server)
