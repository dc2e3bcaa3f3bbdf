"""Lists of pods: all of them, or an error, never a part."""

from __future__ import annotations

import json
import threading

import pytest

from mpirt.errors import PeerError
from mpirt.kubeapi.request.answers import Expired, Forbidden, JsonObject, Overloaded
from mpirt.kubeapi.request.api import Api
from tests.apiserver.faults import Answer, Fault, Status
from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer, Gated, Honest
from tests.protocol.clients import soon

EXPIRED = Status(410, "Expired", "The provided continue parameter is too old")


def name(found: JsonObject) -> str:
    metadata = found["metadata"]
    assert isinstance(metadata, dict)
    return str(metadata["name"])


def page(*names: str, following: str = "", version: str = "7") -> Answer:
    metadata = {"resourceVersion": version, "continue": following}
    return Answer(200, json.dumps({"metadata": metadata, "items": [pod(name) for name in names]}).encode())


class TestAList:
    def test_holds_the_pods_with_the_labels(self, apiserver: ApiServer, api: Api) -> None:
        apiserver.world.put(
            pod("w-0", labels={"job": "a", "role": "worker"}),
            pod("w-1", labels={"job": "b", "role": "worker"}),
            pod("w-2", labels={"job": "a", "role": "worker"}),
            pod("x", labels={"job": "a", "role": "worker"}, namespace="other"),
        )

        names = api.list_pods("ml", name, soon(), labels="job=a,role=worker")

        assert names == ["w-0", "w-2"]

    def test_holds_the_pods_with_the_fields(self, apiserver: ApiServer, api: Api) -> None:
        apiserver.world.put(pod("w-0"), pod("w-1", phase="Pending"), pod("w-2", phase="Failed"))

        assert api.list_pods("ml", name, soon(), fields="status.phase=Pending") == ["w-1"]
        assert api.list_pods("ml", name, soon(), fields="status.phase!=Failed") == ["w-0", "w-1"]

    def test_may_be_empty(self, api: Api) -> None:
        assert api.list_pods("ml", name, soon()) == []

    def test_may_be_null_as_go_writes_an_empty_one(self, apiserver: ApiServer, api: Api) -> None:
        apiserver.on("list", Answer(200, b'{"metadata":{"resourceVersion":"7"},"items":null}'))

        assert api.list_pods("ml", name, soon()) == []

    def test_comes_in_pages_on_one_connection(self, apiserver: ApiServer, api: Api) -> None:
        apiserver.world.put(*(pod(f"w-{number}") for number in range(5)))

        names = api.list_pods("ml", name, soon(), page=2)

        assert names == ["w-0", "w-1", "w-2", "w-3", "w-4"]
        assert [request.query.get("limit") for request in apiserver.asked("list")] == ["2", "2", "2"]
        assert apiserver.connections == 1

    def test_may_hold_five_thousand_pods(self, apiserver: ApiServer, api: Api) -> None:
        apiserver.world.put(*(pod(f"w-{number}") for number in range(5000)))

        names = api.list_pods("ml", name, soon())

        assert names == [f"w-{number}" for number in range(5000)]
        assert len(apiserver.asked("list")) == 20

    def test_shows_one_moment_however_long_it_takes(self, apiserver: ApiServer, api: Api) -> None:
        apiserver.world.put(pod("w-0"), pod("w-1"), pod("w-2"))
        gate = threading.Event()
        apiserver.on("list", Honest(), Gated(gate))
        found: list[str] = []
        reader = threading.Thread(target=lambda: found.extend(api.list_pods("ml", name, soon(), page=2)))
        reader.start()
        apiserver.wait_for("list", 2)
        apiserver.world.delete("w-2")
        gate.set()
        reader.join()

        assert found == ["w-0", "w-1", "w-2"]


class TestAListThatExpires:
    def test_is_begun_again(self, apiserver: ApiServer, api: Api) -> None:
        apiserver.world.put(pod("w-0"), pod("w-1"), pod("w-2"))
        apiserver.on("list", Honest(), EXPIRED)

        names = api.list_pods("ml", name, soon(), page=2)

        assert names == ["w-0", "w-1", "w-2"]
        assert ["continue" in request.query for request in apiserver.asked("list")] == [False, True, False, True]

    def test_is_given_up_when_it_expires_each_time(self, apiserver: ApiServer, api: Api) -> None:
        apiserver.world.put(pod("w-0"), pod("w-1"), pod("w-2"))
        apiserver.on("list", Honest(), EXPIRED, Honest(), EXPIRED, Honest(), EXPIRED)

        with pytest.raises(Expired):
            api.list_pods("ml", name, soon(), page=2)

        assert len(apiserver.asked("list")) == 6


class TestHalfAList:
    @pytest.mark.parametrize(
        ("fault", "error"),
        [
            pytest.param(Status(503), Overloaded, id="the server goes away"),
            pytest.param(Status(403, "Forbidden", "no"), Forbidden, id="the Role is taken away"),
            pytest.param(Answer(200, b'{"metadata":{"resourceVersion":"7"}}'), PeerError, id="no items"),
            pytest.param(Answer(200, b'{"items":[]}'), PeerError, id="no metadata"),
            pytest.param(Answer(200, b'{"metadata":{},"items":[]}'), PeerError, id="no version"),
            pytest.param(Answer(200, b'{"metadata":{"resourceVersion":7},"items":[]}'), PeerError, id="version 7"),
            pytest.param(
                Answer(200, b'{"metadata":{"resourceVersion":"7"},"items":{}}'), PeerError, id="items {}"
            ),
            pytest.param(
                Answer(200, b'{"metadata":{"resourceVersion":"7"},"items":["w-2"]}'), PeerError, id="items no pods"
            ),
            pytest.param(
                Answer(200, b'{"metadata":{"resourceVersion":"7","continue":1},"items":[]}'),
                PeerError,
                id="continue no text",
            ),
        ],
    )
    def test_is_an_error(self, apiserver: ApiServer, api: Api, fault: Fault, error: type[Exception]) -> None:
        apiserver.on("list", page("w-0", "w-1", following="more"), fault)

        with pytest.raises(error):
            api.list_pods("ml", name, soon(), page=2)

    def test_that_never_ends_ends_with_the_deadline(self, apiserver: ApiServer, api: Api) -> None:
        apiserver.always("list", page("w-0", following="more"))

        with pytest.raises(PeerError, match="goes round in a circle"):
            api.list_pods("ml", name, soon())
