"""
Whatever happens in whatever order: never 0 without a proven 0, at most one start, and always an end.

Two kinds of worlds: chaos, where anything may come at any time; and a faithful wrapper behind a connection that
may break or fall silent anywhere, where the outcome must also be the right one.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mpirt.errors import ExitCode
from mpirt.kubeapi.request.answers import ConnectionLost, Failure, NotFound, ProtocolRefused, Rejected
from mpirt.rsh.session.events import (
    ApiAnswers,
    ApiSilent,
    Closed,
    Dial,
    Event,
    Finish,
    HangUp,
    Listening,
    NotOpened,
    Opened,
    PodGone,
    PodHidden,
    PodSeen,
    Pong,
    Received,
    Say,
    Signalled,
    StdinRead,
    StdoutBroken,
    Tick,
)
from tests.unit.rsh import pods
from tests.unit.rsh.sessions import (
    ACK,
    BEAT,
    END,
    END_OPEN,
    GO,
    HELLO,
    START,
    START_RAW,
    SUCCESS,
    V4,
    V5,
    Run,
    err,
    exit_marker,
    exit_status,
    failure_status,
    marker,
    out,
)

ZERO = exit_marker(0)

ANYTHING: list[Event] = [
    *(Opened(V4), Opened(V5), Closed("reset"), Closed(""), Pong(), Tick()),
    NotOpened(ConnectionLost("refused")),
    NotOpened(ProtocolRefused("v4", Failure(403, "", "", None, is_status=False))),
    NotOpened(Rejected("which", Failure(400, "", "a container name must be specified", None, is_status=True))),
    NotOpened(NotFound("none", Failure(404, "", "pod does not exist", 2.0, is_status=True))),
    *(HELLO, START, START_RAW, ACK, BEAT, END, END_OPEN, ZERO, exit_marker(7), exit_marker(137)),
    *(SUCCESS, exit_status(7), exit_status(137), failure_status("lost"), failure_status("container not found")),
    *(
        out(b"text"),
        err(b"text"),
        err(b"\x01mpirt-"),
        out(b""),
        Received(b""),
        Received(b"\x09"),
        marker("NONSENSE"),
    ),
    *(Signalled("TERM", 15), Signalled("INT", 2), StdoutBroken(), StdinRead(b""), StdinRead(b"abc")),
    *(Listening(listening=False), Listening(listening=True)),
    *(PodSeen(pods.HEALTHY), PodSeen(pods.DELETING), PodSeen(pods.REPLACED), PodSeen(pods.RESTARTED)),
    *(PodSeen(pods.NODE_LOST), PodSeen(pods.EVICTED), PodSeen(pods.TAINTED), PodSeen(pods.PENDING), PodGone()),
    *(ApiSilent("refused"), ApiAnswers(), PodHidden("forbidden")),
]
# Chaos alone never gets far: most sessions begin as they should.
BEGINNINGS: list[list[Event]] = [
    [],
    [Tick()],
    [Tick(), Opened(V4)],
    [Tick(), Opened(V5), HELLO],
    [Tick(), Opened(V4), HELLO],
    [Tick(), Opened(V4), HELLO, START],
    [Tick(), Opened(V5), HELLO, START_RAW],
    [Tick(), Opened(V4), HELLO, START, PodSeen(pods.HEALTHY)],
    [Tick(), Opened(V4), HELLO, START, PodSeen(pods.HEALTHY), ZERO],
    [Tick(), Opened(V4), HELLO, START, ZERO, END_OPEN],
]
PAUSES = st.sampled_from([0.0, 0.0, 0.0, 0.05, 0.6, 3.0, 5.0, 15.0, 61.0])


def is_proven(happened: list[Event]) -> bool:
    """Whether the wrapper said EXIT 0, once and nothing else, and the end of the output; and no status differs."""
    against = (exit_marker(7), exit_marker(137), exit_status(7), exit_status(137))
    after_start = happened[happened.index(HELLO) :]
    ends = after_start.count(END) + after_start.count(END_OPEN)
    return after_start.count(ZERO) == 1 and ends > 0 and not any(one in after_start for one in against)


@given(
    st.sampled_from(BEGINNINGS),
    st.lists(st.tuples(PAUSES, st.sampled_from(ANYTHING)), max_size=25),
    st.booleans(),
)
def test_in_chaos(beginning: list[Event], rest: list[tuple[float, Event]], has_stdin: bool) -> None:  # noqa: FBT001
    run = Run(has_stdin=has_stdin)
    run.feed(*beginning)
    happened = list(beginning)
    for pause, event in rest:
        if isinstance(event, StdinRead) and run.session.stdin_room < len(event.data):
            continue
        run.after(pause)
        if run.finish is None:
            happened.append(event)
        run.feed(event)
    run.after(0.0, Listening(listening=True))
    run.after(200.0)

    assert run.finish is not None, "it has to end when nothing more comes"
    assert isinstance(run.actions[-1], Finish)
    assert run.actions.count(GO) <= 1
    if GO in run.actions:
        assert not any(isinstance(action, Dial) for action in run.actions[run.actions.index(GO) :])
    if run.finish.code == 0:
        assert is_proven(happened)
        assert END_OPEN not in happened or END in happened or SUCCESS in happened or run.count(Say) == 1
    assert run.finish.code != 0 or run.finish.line == ""


@given(st.lists(st.sampled_from([Pong(), out(b"text"), err(b"text"), Received(b""), PodSeen(pods.HEALTHY)])))
def test_a_shell_that_never_starts_it_is_not_waited_for_whatever_it_says(said: list[Event]) -> None:
    run = Run()
    run.feed(Tick(), Opened(V4), HELLO, *said)
    for _ in range(61):
        run.after(1.0, Pong())

    assert run.finish is not None
    assert run.finish.code == ExitCode.UNKNOWN_END


# A wrapper that keeps its word, and a command that writes, ends, and is told about.
def faithful(code: int, status: bool) -> list[Event]:  # noqa: FBT001
    words: list[Event] = [Opened(V4), HELLO, START, out(b"a"), err(b"b"), out(b"c"), exit_marker(code), END]
    return [*words, SUCCESS if code == 0 else exit_status(code)] if status else words


@given(
    st.sampled_from([0, 1, 7, 255]), st.integers(0, 9), st.sampled_from([Closed("reset"), SUCCESS, None]), PAUSES
)
def test_behind_a_connection_that_may_break_anywhere(
    code: int, words: int, broken_by: Closed | Received | None, pause: float
) -> None:
    run = Run()
    run.feed(Tick())
    said = faithful(code, status=True)[:words]
    for event in said:
        run.feed(event)
    run.after(pause, *([broken_by] if broken_by else []))
    run.after(200.0)

    assert run.finish is not None
    proven = exit_marker(code) in said and END in said
    if code == 0:
        assert (run.finish.code == 0) == proven
    if code != 0 and exit_marker(code) in said and broken_by is not SUCCESS:
        assert run.finish.code == code
    assert run.finish.code != 0 or run.written(1) == b"ac"


@given(
    st.integers(0, 8),
    st.lists(st.sampled_from([Closed("reset"), NotOpened(ConnectionLost("no")), None]), max_size=6),
)
def test_attempts_before_go_never_add_up_to_two_starts(words: int, failures: list[Event | None]) -> None:
    run = Run()
    for failure in failures:
        run.feed(Tick())
        if failure is None:
            run.feed(Opened(V4), Closed("before HELLO"))
        elif isinstance(failure, Closed):
            run.feed(Opened(V4), failure)
        else:
            run.feed(failure)
        run.after(6.0)
    for event in faithful(0, status=True)[:words]:
        run.feed(event)
    run.after(300.0)

    assert run.actions.count(GO) <= 1
    assert run.finish is not None
    assert run.count(HangUp) >= 1
    assert run.finish.code == 0 or run.finish.code in set(ExitCode)
