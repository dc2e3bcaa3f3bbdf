"""The way into a pod: what is sent in answer to what, until it is known who is there."""

from __future__ import annotations

import pytest

from mpirt.errors import PeerError
from mpirt.kubeapi.request.channels import Succeeded
from mpirt.rsh.protocol.entrance import (
    BOOTSTRAP,
    Entrance,
    Gone,
    Hello,
    KeeperFound,
    KeeperHere,
    Keepers,
    NoKeeper,
    NoSession,
    ToSend,
    greeting,
    parse_answer,
    upload,
)
from tests.unit.rsh.sessions import NONCE, SUCCESS, answer, err, out

KEEPERS = Keepers({"amd64": b"program"})
HERE = answer("KEEPER 1 4000", stream=1, nonce=NONCE)
GONE = answer("GONE 5000", stream=1, nonce=NONCE)


def entrance(*, attach: bool = False) -> Entrance:
    return Entrance(NONCE, KEEPERS, attach=attach)


class TestTheFirstWords:
    def test_in_the_url_hold_nothing_of_the_command(self) -> None:
        assert BOOTSTRAP == ("/bin/sh", "-c", 'IFS= read -r mpirt && eval "$mpirt"')

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
        said = entrance(attach=True).receive(answer("HELLO amd64", nonce=NONCE).message)

        assert said == ToSend(upload(NONCE, KEEPERS, "amd64", attach=True))

    def test_of_a_shell_that_cannot_keep_it_is_the_end_of_that(self) -> None:
        way = entrance()
        way.receive(answer("HELLO amd64", nonce=NONCE).message)

        found = way.receive(answer("HELLO none", nonce=NONCE).message)

        assert isinstance(found, NoKeeper)
        assert found.why.startswith(
            "no folder in the container takes a program and may execute it; mount an emptyDir"
        )

    @pytest.mark.parametrize("arch", ["arm64", "none"])
    def test_of_a_processor_without_a_keeper_is_too(self, arch: str) -> None:
        found = entrance().receive(answer(f"HELLO {arch}", nonce=NONCE).message)

        assert found == NoKeeper(f"there is no keeper for its processor ({arch}); there are keepers for amd64")

    def test_of_a_shell_where_there_is_none_to_send_names_the_installation(self) -> None:
        found = Entrance(NONCE, Keepers({})).receive(answer("HELLO amd64", nonce=NONCE).message)

        why = "this installation of mpirt has no keeper to send; install mpirt's wheel, or use its image"
        assert found == NoKeeper(why)

    def test_that_there_is_no_session_is_for_who_asked_for_one(self) -> None:
        assert entrance(attach=True).receive(GONE.message) == NoSession(5000)
        with pytest.raises(PeerError, match="a keeper that was asked for a new session says that there is none"):
            entrance().receive(GONE.message)

    def test_of_the_server_is_its_status(self) -> None:
        assert entrance().receive(SUCCESS.message) == Succeeded()


class TestALine:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (b"HELLO none", Hello("none")),
            (b"HELLO riscv64", Hello("riscv64")),
            (b"KEEPER 1 4000", KeeperHere(4000)),
            (b"GONE 18446744073709551615", Gone(2**64 - 1)),
        ],
    )
    def test_is_read(self, text: bytes, expected: object) -> None:
        assert parse_answer(text) == expected

    @pytest.mark.parametrize(
        "text",
        [
            *(b"", b"hello", b"HELLO", b"HELLO you", b"HELLO none none", b"HELLO \xff"),
            *(b"KEEPER", b"KEEPER 1", b"KEEPER 2 4000", b"KEEPER 1 4000 1", b"KEEPER 1 -1", b"EXIT 0"),
            *(b"GONE", b"GONE away", b"GONE 18446744073709551616", b"GONE " + b"9" * 5000, b"GONE \xc2\xb2"),
        ],
    )
    def test_that_is_anything_else_breaks_the_protocol(self, text: bytes) -> None:
        with pytest.raises(PeerError, match="invalid answer from the shell in the pod"):
            parse_answer(text)
