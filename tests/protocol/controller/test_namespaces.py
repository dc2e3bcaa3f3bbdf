"""One controller for all namespaces takes jobs of one name for different jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from testbed.kube.wait import until
from tests.apiserver.objects import ObjectServer
from tests.apiserver.storage import Place
from tests.protocol.controller.process import MADE, WITHIN, Controller, job, made

Start = Callable[..., Controller]

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
