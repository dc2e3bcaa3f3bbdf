"""The way into a pod: what is sent in answer to what, until it is known who is there."""

from __future__ import annotations

import pytest

from mpirt.errors import PeerError
from mpirt.kubeapi.request.channels import Succeeded
from mpirt.rsh.protocol.entrance import Entrance, KeeperFound, NoKeeper, NoSession, Say
from mpirt.rsh.protocol.greeting import Keepers, greeting, upload
from tests.unit.rsh.sessions import NONCE, SUCCESS, err, marker, out

KEEPERS = Keepers({"amd64": b"program"})
HERE = marker("KEEPER 1 4000", stream=1)
GONE = marker("GONE 5000", stream=1)


def entrance(*, attach: bool = False) -> Entrance:
    return Entrance(NONCE, KEEPERS, attach=attach)


class TestTheFirstWords:
    @pytest.mark.parametrize("attach", [False, True])
    def test_are_the_greeting(self, attach: bool) -> None:  # noqa: FBT001
        assert entrance(attach=attach).greeting() == greeting(NONCE, KEEPERS, attach=attach)


class TestAnAnswer:
    def test_of_a_keeper_comes_with_the_first_of_its_frames(self) -> None:
        assert entrance().receive(HERE.message + b"frames") == KeeperFound(b"frames", 4000)

    def test_may_come_in_pieces_behind_what_a_runtime_complains_of(self) -> None:
        way, answer = entrance(), b"warning\n" + HERE.message[1:]

        assert way.receive(out(answer[:15]).message) is None
        assert way.receive(err(b"unrelated").message) is None
        assert way.receive(b"\x01") is None
        assert way.receive(out(answer[15:]).message) == KeeperFound(b"", 4000)

    def test_of_a_shell_without_a_keeper_is_answered_by_one(self) -> None:
        said = entrance(attach=True).receive(marker("HELLO amd64").message)

        assert said == Say(upload(NONCE, KEEPERS, "amd64", attach=True))

    def test_of_a_shell_that_cannot_keep_it_is_the_end_of_that(self) -> None:
        way = entrance()
        way.receive(marker("HELLO amd64").message)

        found = way.receive(marker("HELLO none").message)

        assert found == NoKeeper("no folder in the container takes a program and may execute it")

    @pytest.mark.parametrize("arch", ["arm64", "none"])
    def test_of_a_processor_without_a_keeper_is_too(self, arch: str) -> None:
        found = entrance().receive(marker(f"HELLO {arch}").message)

        assert found == NoKeeper(f"there is no keeper for the pod's processor ({arch})")

    def test_that_there_is_no_session_is_for_who_asked_for_one(self) -> None:
        assert entrance(attach=True).receive(GONE.message) == NoSession(5000)
        with pytest.raises(PeerError, match="a keeper that was asked for a new session says that there is none"):
            entrance().receive(GONE.message)

    def test_of_the_server_is_its_status(self) -> None:
        assert entrance().receive(SUCCESS.message) == Succeeded()
