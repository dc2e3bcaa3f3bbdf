"""A session that may have a keeper, up to the moment when it is known whether it has one."""

from __future__ import annotations

import pytest

from mpirt.errors import ExitCode
from mpirt.rsh.invocation.order import Order
from mpirt.rsh.protocol import wrapper
from mpirt.rsh.protocol.greeting import Keepers, greeting, upload
from mpirt.rsh.session.events import (
    Closed,
    Dial,
    Finish,
    HangUp,
    Note,
    Received,
    Send,
    StdinBroken,
    StdoutBroken,
    Tick,
)
from mpirt.rsh.session.holding import Holding
from mpirt.rsh.session.machine import State
from tests.unit.rsh.keepers import ATTACH, ATTACHED, CONTROL, STARTED, frame, keeper_line, u64
from tests.unit.rsh.sessions import (
    END,
    FIRST,
    GO,
    NONCE,
    START,
    SUCCESS,
    Run,
    exit_marker,
    failure_status,
    marker,
    no_keeper,
    out,
)

KEEPERS = Keepers({"amd64": b"program"})
ORDER = Order(NONCE, b"true")


def opened() -> Run:
    return Run(holding=Holding(KEEPERS)).open()


def sent(run: Run) -> bytes:
    return b"".join(action.message[1:] for action in run.actions if isinstance(action, Send))


class TestAPodWithAKeeper:
    def test_is_greeted(self) -> None:
        assert sent(opened()) == greeting(FIRST, KEEPERS)

    def test_has_the_command_from_its_first_word_on(self) -> None:
        run = opened()
        run.feed(out(keeper_line()))

        words = sent(run)[len(greeting(FIRST, KEEPERS)) :]
        assert words.startswith(frame(ATTACH, 1, 0, u64(0, 0)) + bytes([CONTROL, 0]))
        assert run.session.state is State.GO
        assert run.session.bounds_output

    def test_may_answer_in_the_same_message(self) -> None:
        run = opened()
        answer = frame(ATTACHED, 1, 0, b"\0" + u64(0)) + frame(STARTED, 1, 77, b"\1")
        run.feed(out(keeper_line() + answer))

        assert run.session.state is State.RUNNING

    def test_gets_one_where_it_has_none(self) -> None:
        run = opened()
        run.feed(no_keeper("amd64"))

        assert sent(run) == greeting(FIRST, KEEPERS) + upload(FIRST, KEEPERS, "amd64")
        assert run.session.state is State.HELLO


class TestAPodWithout:
    def test_gets_the_wrapper_and_the_order_to_go(self) -> None:
        run = opened()

        actions = run.feed(no_keeper())

        why = "there is no keeper for the pod's processor (none)"
        assert actions[0] == Note(f"this command can't outlive its connection: {why}")
        assert sent(run) == greeting(FIRST, KEEPERS) + wrapper.script(ORDER) + b"GO\n"
        assert actions[-1] == GO
        assert not run.session.bounds_output

    def test_runs_the_command_as_ever(self) -> None:
        run = opened()
        run.feed(no_keeper(), START, out(b"text"), exit_marker(7), END)
        run.after(1.0)

        assert run.finish == Finish(7)
        assert run.written(1) == b"text"


class TestAnAttempt:
    def test_that_says_nothing_yet_is_waited_for(self) -> None:
        assert opened().feed(Received(b"\x01"), out(b"a complaint\n")) == []

    @pytest.mark.parametrize("end", [Closed("reset"), failure_status("lost"), SUCCESS])
    def test_that_ends_before_an_answer_is_made_again(self, end: Closed | Received) -> None:
        run = opened()
        run.feed(end)
        assert run.count(HangUp) == 1
        run.after(6.0)

        assert run.count(Dial) == 2

    def test_after_another_greets_by_a_nonce_of_its_own(self) -> None:
        run = opened()
        run.feed(no_keeper("amd64"), Closed("reset"))
        run.after(6.0)
        run.open()
        run.feed(no_keeper("amd64", attempt=2))

        second = f"{NONCE}a2"
        assert sent(run) == b"".join(
            greeting(nonce, KEEPERS) + upload(nonce, KEEPERS, "amd64") for nonce in (FIRST, second)
        )

    def test_that_finds_no_session_though_it_asked_for_none_is_nonsense(self) -> None:
        run = opened()
        run.feed(marker("GONE 4000", stream=1, nonce=FIRST))

        assert run.finish is not None
        assert run.finish.code == ExitCode.PEER


class TestABoundCommand:
    """The same words mean the same where there is no keeper."""

    def test_ends_when_our_stdin_breaks(self) -> None:
        run = Run(has_stdin=True).started()
        assert run.feed(StdinBroken("input/output error")) == [Send(b"\x00K15\n")]

        run.feed(exit_marker(0), END)

        assert run.finish is not None
        assert run.finish.code == ExitCode.UNKNOWN_END
        line = (
            "the command was ended because its stdin can't be read: input/output error; the command ended with 0"
        )
        assert run.finish.line == line

    def test_is_not_hurried_by_a_stdout_that_is_lost_twice(self) -> None:
        run = Run().started()
        run.feed(StdoutBroken())

        assert run.feed(StdoutBroken(), Tick()) == []
