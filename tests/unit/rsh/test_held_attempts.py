"""The attempts to find a keeper again, and what comes when it does not belong to any."""

from __future__ import annotations

import pytest

from mpirt.errors import ExitCode
from mpirt.kubeapi.access.credentials import PluginFailed
from mpirt.kubeapi.request.answers import Failure, ProtocolRefused
from mpirt.rsh.protocol.entrance import Keepers, greeting, upload
from mpirt.rsh.session.events import (
    ApiAnswers,
    Closed,
    Dial,
    Event,
    Finish,
    HangUp,
    Listening,
    NotOpened,
    Opened,
    PodSeen,
    Received,
    Send,
    Signalled,
    StdinBroken,
)
from mpirt.rsh.session.machine import State
from mpirt.rsh.session.task import Holding
from tests.unit.rsh import pods
from tests.unit.rsh.keepers import HeldRun, keeper_line
from tests.unit.rsh.sessions import DIALING, FIRST, SUCCESS, V4, V5, Run, err, failure_status, no_keeper, out

NO_V4 = ProtocolRefused("v4", Failure(403, "", "", None, is_status=False))
KEEPERS = Keepers({"amd64": b"program"})


def redialled() -> HeldRun:
    """The connection is lost, and another one is open."""
    run = HeldRun().begin()
    run.cut()
    run.until_dialled(Opened(V4))
    return run


def dialled(run: Run) -> list[str]:
    return [action.protocol for action in run.actions if isinstance(action, Dial)]


class TestAnAttempt:
    @pytest.mark.parametrize("end", [Closed("reset"), SUCCESS, failure_status("lost"), no_keeper()])
    def test_an_attempt_that_ends_without_the_keepers_word_is_made_again(self, end: Closed | Received) -> None:
        run = redialled()
        run.feed(end)
        assert run.session.phase.state is State.DETACHED
        assert run.count(HangUp) == 2

        run.after(3.0)

        assert run.count(Dial) == 3

    def test_an_attempt_that_is_not_answered_within_ten_seconds_is_made_again(self) -> None:
        run = redialled()
        run.after(9.9)
        assert run.count(HangUp) == 1

        run.after(0.2)
        assert run.count(HangUp) == 2
        run.after(3.0)
        assert run.count(Dial) == 3

    def test_an_attempt_that_finds_a_shell_without_the_program_sends_it_again(self) -> None:
        run = Run(holding=Holding(KEEPERS)).open()
        run.feed(out(keeper_line()), Closed("reset"))
        run.after(0.3)
        before = len(run.actions)
        run.feed(Opened(V4), Received(b"\x01"), err(b"a complaint\n"), no_keeper("amd64"))

        words = [action.message[1:] for action in run.actions[before:] if isinstance(action, Send)]
        assert b"".join(words) == greeting(FIRST, KEEPERS, attach=True) + upload(
            FIRST, KEEPERS, "amd64", attach=True
        )

    def test_an_attempt_that_is_refused_for_its_protocol_is_made_with_the_other_one(self) -> None:
        run = HeldRun().begin()
        run.cut()
        for _ in range(2):
            run.until_dialled(NotOpened(NO_V4))
        run.until_dialled()

        assert dialled(run) == [V4, V4, V5, V4]

    def test_an_attempt_that_a_node_refuses_shows_that_the_api_server_answers(self) -> None:
        run = HeldRun.lost()
        while run.finish is None and run.now < 60:
            run.until_dialled(NotOpened(DIALING))

        assert run.code == ExitCode.NODE_LOST


WORD, CLOSED = out(keeper_line()), Closed("reset")


def attempts_that_end(run: HeldRun, *how: Event, until: float) -> None:
    """The attempts until then, and one more: each ends like this, while the API server answers others."""
    while run.finish is None and run.now < until:
        run.until_dialled(ApiAnswers(), *how)


class TestTheNode:
    """What an attempt proves against it."""

    @pytest.mark.parametrize(
        "how",
        [
            pytest.param((Opened(V4), WORD, CLOSED), id="the keeper's word"),
            pytest.param((Opened(V4), err(b"a complaint"), CLOSED), id="any byte"),
            pytest.param((Opened(V4), CLOSED), id="nothing"),
        ],
    )
    def test_a_node_is_not_lost_because_connections_end_after(self, how: tuple[Event, ...]) -> None:
        run = HeldRun.lost()

        attempts_that_end(run, *how, until=150.0)

        assert run.finish is None

    def test_a_node_is_not_lost_by_one_failure_after_connections_that_ended(self) -> None:
        run = HeldRun.lost()
        attempts_that_end(run, Opened(V4), CLOSED, until=30.0)
        begun = run.now
        attempts_that_end(run, NotOpened(DIALING), until=begun + 14.0)
        assert run.finish is None

        attempts_that_end(run, NotOpened(DIALING), until=begun + 30.0)

        assert run.code == ExitCode.NODE_LOST

    def test_a_node_is_not_silent_while_its_output_is_not_read(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY), Listening(listening=False))
        run.after(60.0)
        run.cut()
        attempts_that_end(run, NotOpened(DIALING), until=60.0 + 14.0)
        run.after(20.0 + 60.0 - run.now)

        assert run.finish is None

    def test_a_node_that_has_answered_has_its_whole_patience_again(self) -> None:
        run = HeldRun.lost()
        attempts_that_end(run, NotOpened(DIALING), until=12.0)
        run.until_dialled(Opened(V4), WORD)
        run.after(9.0, CLOSED)
        answered = run.now
        attempts_that_end(run, NotOpened(DIALING), until=answered + 14.0)
        assert run.finish is None

        attempts_that_end(run, NotOpened(DIALING), until=answered + 30.0)

        assert run.code == ExitCode.NODE_LOST

    def test_a_node_that_has_answered_and_then_says_nothing_has_answered(self) -> None:
        run = HeldRun.lost()
        attempts_that_end(run, NotOpened(DIALING), until=12.0)
        run.until_dialled(Opened(V4), err(b"a complaint"))
        run.after(10.0)

        assert run.finish is None

    def test_a_node_is_lost_in_its_patience_though_a_connection_ends_in_between(self) -> None:
        run = HeldRun.lost()
        attempts_that_end(run, NotOpened(DIALING), until=10.0)
        attempts_that_end(run, Opened(V4), CLOSED, until=run.now + 0.1)
        attempts_that_end(run, NotOpened(DIALING), until=60.0)

        assert (run.code, run.now < 26) == (ExitCode.NODE_LOST, True)


class TestCredentials:
    def test_credentials_have_what_is_left_of_the_lease(self) -> None:
        run = HeldRun().begin()
        run.cut()
        (first,) = (action for action in run.after(0.25) if isinstance(action, Dial))
        run.after(100.0, NotOpened(PluginFailed("it failed")))
        (second,) = (action for action in run.after(0.25) if isinstance(action, Dial))

        assert (first.seconds, second.seconds) == (10.0, 10.0)
        assert first.credentials_seconds == pytest.approx(179.8)
        assert second.credentials_seconds == pytest.approx(79.5, abs=0.3)


class TestWhatComesBesides:
    def test_a_lost_connections_last_words_are_not_heard(self) -> None:
        run = HeldRun().begin()
        run.cut()

        assert run.feed(out(b"nonsense"), SUCCESS, err(b"x")) == []

    def test_news_of_attempts_that_nobody_makes_change_nothing(self) -> None:
        run = HeldRun().begin()

        assert run.feed(Opened(V4), NotOpened(DIALING)) == []
        assert run.session.phase.state is State.RUNNING

    def test_what_a_runtime_writes_beside_the_frames_is_not_the_commands(self) -> None:
        run = HeldRun().begin()

        assert run.feed(err(b"warning"), Received(b"\x01")) == []
        assert run.written(2) == b""

    def test_an_api_server_that_answers_while_all_is_well_is_no_news(self) -> None:
        run = HeldRun().begin()

        assert run.feed(ApiAnswers()) == []


class TestAnEnd:
    def test_an_end_by_a_broken_stdin_is_never_a_success(self) -> None:
        run = HeldRun(has_stdin=True).begin()
        run.meets(StdinBroken("input/output error"))
        run.ends(0)

        line = (
            "the command was ended because its stdin can't be read: input/output error; the command ended with 0"
        )
        assert run.finish == Finish(ExitCode.UNKNOWN_END, line)

    def test_an_end_that_was_asked_for_before_the_command_was_started_comes_after_that(self) -> None:
        run = HeldRun()
        run.until_dialled()
        run.connect(breaks_after=1)
        run.feed(Signalled("TERM", 15))
        run.until_dialled()
        run.connect()

        assert run.session.phase.state is State.TERMINATING
        assert run.keeper.controls[1:] == [b"E\x0f" + (3000).to_bytes(4, "little")]
