"""A connection to a keeper that is lost: how it is looked for, and when that is given up."""

from __future__ import annotations

import pytest

from mpirt.errors import ExitCode
from mpirt.kubeapi.request.answers import ConnectionLost, Failure, Overloaded, ServerFailed, TimedOut
from mpirt.rsh.session.events import (
    ApiAnswers,
    ApiSilent,
    Dial,
    Finish,
    HangUp,
    Note,
    NotOpened,
    Opened,
    PodSeen,
    Received,
    Tick,
)
from mpirt.rsh.session.machine import State
from mpirt.rsh.session.task import Patience
from tests.unit.rsh import pods
from tests.unit.rsh.keepers import HeldRun
from tests.unit.rsh.sessions import DIALING, SUCCESS, TERM, USR1, V4, V5, exit_status, failure_status, no_keeper

UNAVAILABLE = ServerFailed(
    "x", Failure(500, "", "rpc error: code = Unavailable desc = connection error", None, is_status=True)
)
BUSY = Overloaded("y", Failure(429, "", "too many requests", 7.0, is_status=True))


class TestALostConnection:
    def test_a_lost_connection_is_dialled_again(self) -> None:
        run = HeldRun.lost()

        assert run.session.phase.state is State.DETACHED
        assert any(isinstance(action, Dial) for action in run.after(0.25))

    def test_signals_wait_for_the_next(self) -> None:
        run = HeldRun().begin()
        run.cut()
        run.feed(USR1)
        run.reconnect()

        assert run.keeper.controls[1:] == [b"K\x0a"]

    def test_an_order_to_end_waits_for_the_next_but_not_for_long(self) -> None:
        run = HeldRun().begin()
        run.cut()
        run.feed(TERM)
        run.after(5.0)

        assert run.finish == Finish(143, "pod w is out of reach; its command ends there within 180 s")

    def test_an_order_to_end_is_given_when_it_is_back(self) -> None:
        run = HeldRun().begin()
        run.cut()
        run.feed(TERM)
        run.reconnect()
        assert run.session.phase.state is State.TERMINATING

        run.ends(15, signal=True)

        assert run.finish == Finish(143)

    def test_before_the_command_was_started_it_is_started_then_once(self) -> None:
        run = HeldRun()
        run.until_dialled()
        run.connect(breaks_after=1)
        run.reconnect()

        assert run.session.phase.state is State.RUNNING
        assert run.keeper.starts == 1

    def test_silence_is_a_lost_connection(self) -> None:
        run = HeldRun().begin()
        run.after(14.1)

        assert run.session.phase.state is State.DETACHED
        assert run.count(HangUp) == 1

    @pytest.mark.parametrize(
        ("status", "words"),
        [
            pytest.param(SUCCESS, "the server reported success before the command's end", id="success"),
            pytest.param(exit_status(137), "the exec's process ended with code 137, signal 9", id="killed"),
            pytest.param(exit_status(1), "the exec's process ended with code 1", id="a code"),
            pytest.param(failure_status("the node went away"), "the node went away", id="a failure"),
            pytest.param(
                Received(b'\x03{"status":"Failure","reason":"Expired"}'),
                "Expired",
                id="a reason without a message",
            ),
            pytest.param(Received(b'\x03{"status":"Failure"}'), "no reason given", id="no reason"),
        ],
    )
    def test_a_lost_connection_is_described_by_its_status(self, status: Received, words: str) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.keeper.disconnect()
        run.is_open = False

        assert Note(f"the connection is lost: {words}") in run.feed(status)

        run.feed(ApiSilent("refused"), NotOpened(ConnectionLost("refused")))
        run.after(180.0)
        assert run.finish is not None
        assert run.finish.line.startswith(f"the connection to pod w was lost ({words}) and did not come back")

    def test_before_the_keeper_answered_is_described_as_that(self) -> None:
        run = HeldRun.lost()
        run.until_dialled()
        run.connect(breaks_after=0)

        line = "the keeper was not reached: the connection to pod w ended before its keeper answered: reset"
        assert Note(line) in run.actions

    def test_where_there_is_no_lease_it_is_the_end(self) -> None:
        run = HeldRun(patience=Patience(lease=0)).begin()
        run.cut()
        run.feed(PodSeen(pods.HEALTHY))

        assert run.finish == Finish(ExitCode.CONNECTION_LOST, "the connection to pod w was lost: reset")

    def test_where_the_session_cannot_be_found_again_it_is_the_end(self) -> None:
        run = HeldRun()
        run.keeper.can_attach = False
        run.begin()
        run.cut()
        run.after(3.0)

        assert run.code == ExitCode.CONNECTION_LOST
        assert run.count(Dial) == 1

    def test_the_api_server_is_waited_for_as_long_as_the_lease(self) -> None:
        run = HeldRun().begin()
        run.cut()
        for _ in range(60):
            run.feed(NotOpened(ConnectionLost("refused")), ApiSilent("refused"))
            run.after(2.9)
        assert run.finish is None

        run.after(10.0)

        line = (
            "the connection to pod w was lost (reset) and did not come back within the lease of 180 s, after "
            "which the command is ended there; refused"
        )
        assert run.finish == Finish(ExitCode.CONNECTION_LOST, line)

    def test_an_api_server_that_has_too_much_to_do_says_when_to_come_back(self) -> None:
        run = HeldRun().begin()
        run.cut()
        run.until_dialled(NotOpened(BUSY), ApiAnswers())

        assert not any(isinstance(action, Dial) for action in run.after(7.0))
        assert any(isinstance(action, Dial) for action in run.after(1.0))
        run.after(30.0)
        assert run.finish is None

    def test_an_api_server_that_asks_for_more_time_than_the_lease_has_is_asked_again_within_it(self) -> None:
        run = HeldRun(patience=Patience(lease=10)).begin()
        run.cut()
        run.until_dialled(NotOpened(Overloaded("y", Failure(503, "", "", 30.0, is_status=True))))

        assert any(isinstance(action, Dial) for action in run.after(3.0))

    def test_a_node_that_refuses_while_the_api_server_answers_has_less_time(self) -> None:
        run = HeldRun.lost()
        run.until_dialled(ApiAnswers(), NotOpened(DIALING))
        run.after(19.0)
        assert run.finish is None

        run.after(1.1)

        line = "node node-1 of pod w has not answered for 20 s, while the API server does; x"
        assert run.finish == Finish(ExitCode.NODE_LOST, line)

    def test_a_node_that_the_cluster_does_not_hear_has_as_much(self) -> None:
        """After an outage the API server knows of the kubelets only what they said before it."""
        run = HeldRun.lost()
        run.feed(ApiAnswers(), PodSeen(pods.NODE_LOST))
        run.until_dialled()
        assert run.finish is None

        run.connect()

        assert run.session.phase.state is State.RUNNING
        run.feed(PodSeen(pods.HEALTHY))
        assert run.finish is None

    @pytest.mark.parametrize(
        "status",
        [
            pytest.param(SUCCESS, id="on its way down"),
            pytest.param(None, id="away"),
            pytest.param(failure_status("unable to upgrade connection: rpc error: code = Unavailable"), id="v5"),
            pytest.param(
                failure_status("OCI runtime exec failed: resource temporarily unavailable"), id="no pids left"
            ),
            pytest.param(exit_status(137), id="a bootstrap that is killed"),
            pytest.param(no_keeper(), id="a shell, and no keeper's file any more"),
        ],
    )
    def test_a_runtime_that_is_away_has_the_lease(self, status: Received | None) -> None:
        """The node answers, and what runs there goes on."""
        run = HeldRun.lost()
        while run.now < 100.0:
            run.until_dialled(ApiAnswers(), *([Opened(V4), status] if status else [NotOpened(UNAVAILABLE)]))
        assert run.finish is None

        while run.finish is None and run.now < 200.0:
            run.until_dialled(ApiAnswers(), NotOpened(UNAVAILABLE))

        assert run.code == ExitCode.CONNECTION_LOST

    @pytest.mark.parametrize("text", ["error dialing backend: refused", "error sending request: i/o timeout"])
    def test_an_api_server_that_tells_on_v5_of_a_lost_node_is_no_node(self, text: str) -> None:
        run = HeldRun.lost()
        while run.finish is None:
            run.until_dialled(ApiAnswers(), Opened(V5), failure_status(text))

        assert (run.finish.code, run.now < 30) == (ExitCode.NODE_LOST, True)

    def test_a_node_is_not_given_up_while_an_open_way_to_it_waits_for_its_word(self) -> None:
        run = HeldRun.lost()
        while run.now < 19.0:
            run.until_dialled()
            run.after(min(1.0, max(0.0, 19.5 - run.now)), ApiAnswers())
            if run.now < 19.0:
                run.feed(NotOpened(DIALING))
        run.feed(Opened(V4))
        run.after(3.0)
        assert run.finish is None

        run.feed(NotOpened(DIALING))
        assert run.code == ExitCode.NODE_LOST

    def test_time_in_which_the_agent_was_stopped_counts_against_no_node(self) -> None:
        run = HeldRun.lost()
        run.until_dialled(ApiAnswers(), NotOpened(DIALING))
        run.now += 60
        run.feed(Tick())
        assert run.finish is None

        run.connect()
        assert run.session.phase.state is State.RUNNING

    def test_a_node_that_says_nothing_has_no_more(self) -> None:
        run = HeldRun().begin()
        run.after(6.0, PodSeen(pods.HEALTHY))
        run.after(8.1, PodSeen(pods.HEALTHY))
        assert run.session.phase.state is State.DETACHED

        run.until_dialled()
        run.after(1.0, ApiAnswers())
        run.after(9.0, NotOpened(TimedOut("no answer")))

        assert run.code == ExitCode.NODE_LOST

    def test_an_api_server_that_was_frozen_gets_a_chance_when_it_is_back(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.after(14.1)
        for _ in range(4):
            run.until_dialled()
            run.after(10.0, NotOpened(TimedOut("no answer")), ApiSilent("no answer"))
        run.feed(ApiAnswers(), PodSeen(pods.HEALTHY))
        assert run.finish is None

        run.until_dialled()
        run.connect()

        assert run.session.phase.state is State.RUNNING
