"""The way into a pod: what is sent in answer to what, until it is known who is there."""

from __future__ import annotations

import pytest

from mpirt.errors import PeerError
from mpirt.kubeapi.request.channels import Succeeded
from mpirt.rsh.protocol.entrance import (
    BOOTSTRAP,
    Entrance,
    KeeperFound,
    Keepers,
    NoKeeper,
    NoSession,
    ToSend,
    greeting,
    upload,
)
from tests.unit.rsh.sessions import NONCE, SUCCESS, answer, err, out

KEEPERS = Keepers({"amd64": b"program"})
NO_KEEPER = "there is no keeper for its processor ({}); there are keepers for amd64"
HERE = answer("KEEPER 1 4000", stream=1, nonce=NONCE)
GONE = answer("GONE 5000", stream=1, nonce=NONCE)


def entrance(*, attach: bool = False) -> Entrance:
    return Entrance(NONCE, KEEPERS, attach=attach)


class TestTheFirstWords:
    def test_the_first_words_in_the_url_hold_nothing_of_the_command(self) -> None:
        assert BOOTSTRAP == ("/bin/sh", "-c", 'IFS= read -r mpirt && eval "$mpirt"')

    @pytest.mark.parametrize("attach", [False, True])
    def test_the_first_words_are_the_greeting(self, attach: bool) -> None:  # noqa: FBT001
        assert entrance(attach=attach).greeting() == greeting(NONCE, KEEPERS, attach=attach)


class TestAnAnswer:
    def test_an_answer_of_a_keeper_comes_with_the_first_of_its_frames(self) -> None:
        assert entrance().receive(HERE.message + b"frames") == KeeperFound(b"frames", 4000)

    def test_an_answer_may_come_in_pieces_behind_what_a_runtime_complains_of(self) -> None:
        way, answer = entrance(), b"warning\n" + HERE.message[1:]

        assert way.receive(out(answer[:15]).message) is None
        assert way.receive(err(b"unrelated").message) is None
        assert way.receive(b"\x01") is None
        assert way.receive(out(answer[15:]).message) == KeeperFound(b"", 4000)

    def test_an_answer_of_a_shell_without_a_keeper_is_answered_by_one(self) -> None:
        said = entrance(attach=True).receive(answer("HELLO amd64", nonce=NONCE).message)

        assert said == ToSend(upload(NONCE, KEEPERS, "amd64", attach=True))

    def test_an_answer_of_a_shell_that_cannot_keep_it_is_the_end_of_that(self) -> None:
        way = entrance()
        way.receive(answer("HELLO amd64", nonce=NONCE).message)

        found = way.receive(answer("HELLO none", nonce=NONCE).message)

        assert isinstance(found, NoKeeper)
        assert found.why.startswith(
            "no folder in the container takes a program and may execute it; mount an emptyDir"
        )

    def test_an_answer_of_a_processor_that_is_not_known_is_too(self) -> None:
        found = entrance().receive(answer("HELLO none", nonce=NONCE).message)

        assert found == NoKeeper(NO_KEEPER.format("none"))

    def test_an_answer_of_a_shell_where_there_is_none_to_send_names_the_installation(self) -> None:
        found = Entrance(NONCE, Keepers({})).receive(answer("HELLO amd64", nonce=NONCE).message)

        why = "this installation of mpirt has no keeper to send; install mpirt's wheel, or use its image"
        assert found == NoKeeper(why)

    def test_an_answer_that_there_is_no_session_is_for_who_asked_for_one(self) -> None:
        assert entrance(attach=True).receive(GONE.message) == NoSession(5000)
        with pytest.raises(PeerError, match="a keeper that was asked for a new session says that there is none"):
            entrance().receive(GONE.message)

    def test_an_answer_of_the_server_is_its_status(self) -> None:
        assert entrance().receive(SUCCESS.message) == Succeeded()


class TestALine:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("HELLO amd64", ToSend(upload(NONCE, KEEPERS, "amd64", attach=True))),
            (
                "HELLO riscv64",
                NoKeeper(NO_KEEPER.format("riscv64")),
            ),
            ("KEEPER 1 4000", KeeperFound(b"", 4000)),
            ("GONE 18446744073709551615", NoSession(2**64 - 1)),
        ],
    )
    @pytest.mark.parametrize("stream", [1, 2])
    def test_the_line_that_matters_may_be_cut_anywhere(self, text: str, expected: object, stream: int) -> None:
        data = f"a complaint\n\x01mpirt-another KEEPER 1 4000\n\x01mpirt-{NONCE} {text}\n".encode()
        for at in range(len(data)):
            way = entrance(attach=True)
            assert way.receive(bytes([stream]) + data[:at]) is None
            assert way.receive(bytes([3 - stream]) + b"something else\n") is None
            assert way.receive(bytes([stream]) + data[at:]) == expected

    def test_more_than_any_complaint_is_refused(self) -> None:
        way = entrance()
        assert way.receive(err(b"x" * 65536).message) is None

        with pytest.raises(PeerError, match="65537 bytes came from the pod before its shell answered"):
            way.receive(err(b"x").message)

    @pytest.mark.parametrize(
        "text",
        [
            *("", "hello", "HELLO", "HELLO you", "HELLO none none", "HELLO \xff", "GONE", "GONE away", "EXIT 0"),
            *(
                "KEEPER",
                "KEEPER 1",
                "KEEPER 2 4000",
                "KEEPER 1 4000 1",
                "KEEPER 1 -1",
                "KEEPER 1 18446744073709551616",
            ),
            *("GONE 18446744073709551616", "GONE " + "9" * 5000, "GONE \xc2\xb2"),
        ],
        ids=lambda text: text[:30],
    )
    def test_an_answer_that_is_anything_else_breaks_the_protocol(self, text: str) -> None:
        line = f"\x01mpirt-{NONCE} {text}\n".encode("latin-1")

        with pytest.raises(PeerError, match="invalid answer from the shell in the pod"):
            entrance(attach=True).receive(out(line).message)
