"""
Connections to a keeper that break at any byte: nothing is lost, nothing comes twice, and it ends.

The keeper is keepers.py's, which checks by itself that what comes to it is in order.
"""

from __future__ import annotations

from typing import Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpirt.errors import ExitCode
from mpirt.kubeapi.request.answers import ConnectionLost, Failure, ServerFailed
from mpirt.rsh.session.events import (
    ApiAnswers,
    ApiSilent,
    Dial,
    Event,
    Finish,
    NotOpened,
    Opened,
    PodGone,
    PodSeen,
    Signalled,
    StdinRead,
    Written,
)
from mpirt.rsh.session.machine import State
from tests.unit.rsh import pods
from tests.unit.rsh.keepers import WINDOW, HeldRun
from tests.unit.rsh.sessions import V4, err, exit_status, out

SIGNALS = {10: Signalled("USR1", 10), 12: Signalled("USR2", 12)}
# Few enough for a control or a header to be cut, and enough for all of it.
CUTS = st.integers(0, 300) | st.integers(0, 100_000)
_NUMBERED = bytes(range(251)) * 1200


def numbered(size: int) -> bytes:
    """Bytes of which no two pieces of a frame's length are the same."""
    return _NUMBERED[:size]


DATA = st.binary(max_size=30) | st.integers(0, 70_000).map(numbered)


class Happening(Protocol):
    """What happens to a run and to the command that it is about."""

    def __call__(self, world: World) -> None: ...


class World:
    """A run, and what must have come about at its end."""

    def __init__(self, *, has_stdin: bool = True) -> None:
        self.run = HeldRun(has_stdin=has_stdin)
        self.output = {1: b"", 2: b""}
        self.stdin = b""
        self.signals: list[int] = []
        self.told = {1: 0, 2: 0}
        self.heard = 0

    def happens(self, happening: Happening) -> None:
        if self.run.finish is None:
            happening(self)
        assert all(self.waiting(stream) <= WINDOW for stream in (1, 2))

    def waiting(self, stream: int) -> int:
        """How much output the agent has received and could not write yet."""
        return len(self.run.written(stream)) - self.told[stream]

    def tells(self, stdout: int, stderr: int) -> None:
        """So much of each stream is written by now."""
        self.told = {1: stdout, 2: stderr}
        self.run.feed(Written(stdout, stderr))

    def begins(self, cuts: list[int]) -> None:
        """The first connections break so early that there may be no command yet."""
        self.run.until_dialled()
        for cut in cuts:
            self.run.connect(breaks_after=cut)
            self.run.until_dialled()
        self.run.connect()

    def reconnects(self) -> None:
        if not self.run.is_open:
            self.run.until_dialled()
            self.run.connect()

    def ends(self, code: int) -> None:
        """The command ends by itself, and all that it wrote is written."""
        self.reconnects()
        self.run.keeper.ends(code)
        for _ in range(100):
            self.run.carry()
            self.tells(len(self.run.written(1)), len(self.run.written(2)))
            if self.run.session.phase.state in (State.EXITED, State.DONE):
                break
        self.run.after(5.0)


def writes(stream: int, data: bytes) -> Happening:
    def happen(world: World) -> None:
        world.output[stream] += data
        world.run.keeper.writes(**{"stdout" if stream == 1 else "stderr": data})

    return happen


def reads(data: bytes) -> Happening:
    """Our own stdin has so much, and it is read as far as there is room."""

    def happen(world: World) -> None:
        rest = data
        while piece := rest[: world.run.session.phase.stdin_room]:
            rest = rest[len(piece) :]
            world.stdin += piece
            world.run.feed(StdinRead(piece))

    return happen


def signals(number: int) -> Happening:
    def happen(world: World) -> None:
        world.signals.append(number)
        world.run.feed(SIGNALS[number])

    return happen


def breaks(after: int) -> Happening:
    def happen(world: World) -> None:
        world.run.carry(breaks_after=after)

    return happen


def comes_back(after: int | None) -> Happening:
    def happen(world: World) -> None:
        if not world.run.is_open:
            world.run.until_dialled()
            world.run.connect(breaks_after=after)

    return happen


def ends_stdin(world: World) -> None:
    if world.run.session.phase.stdin_room:
        world.run.feed(StdinRead(b""))


def says_nothing(world: World) -> None:
    world.run.carry()


def writes_out(world: World) -> None:
    world.tells(len(world.run.written(1)), len(world.run.written(2)))


def writes_some_out(parts: tuple[int, int]) -> Happening:
    """Our own reader takes some eighths of what waits."""

    def happen(world: World) -> None:
        stdout, stderr = (
            world.told[stream] + world.waiting(stream) * part // 8
            for stream, part in zip((1, 2), parts, strict=True)
        )
        world.tells(stdout, stderr)

    return happen


def is_killed(eighths: int) -> Happening:
    """Our process is killed; the agent has heard of so much of what was taken of stdin since the last time."""

    def happen(world: World) -> None:
        run = world.run
        heard = world.heard + (run.session.phase.stdin_taken - world.heard) * eighths // 8
        world.heard = heard
        run.is_killed(stdin_known=heard)
        # The agent has what has come, whoever is killed.
        world.told = {stream: len(run.written(stream)) for stream in (1, 2)}

    return happen


HAPPENINGS: st.SearchStrategy[Happening] = st.one_of(
    st.builds(writes, st.sampled_from([1, 2]), DATA),
    st.builds(reads, DATA | st.integers(30_000, 300_000).map(numbered)),
    st.builds(signals, st.sampled_from(sorted(SIGNALS))),
    st.builds(breaks, CUTS),
    st.builds(comes_back, st.none() | CUTS),
    st.builds(is_killed, st.integers(0, 8)),
    st.sampled_from([says_nothing, writes_out, ends_stdin]),
)


@given(st.lists(CUTS, max_size=4), st.lists(HAPPENINGS, max_size=25), st.sampled_from([0, 1, 7, 255]))
def test_every_byte_and_every_signal_arrives_once_and_in_order(
    cuts: list[int], happenings: list[Happening], code: int
) -> None:
    world = World()
    world.begins(cuts)
    for happening in happenings:
        world.happens(happening)
    world.reconnects()
    world.run.carry()
    world.happens(ends_stdin)
    world.ends(code)

    keeper, run = world.run.keeper, world.run
    assert run.finish == Finish(code)
    assert {1: run.written(1), 2: run.written(2)} == world.output
    assert keeper.stdin == world.stdin
    assert keeper.stdin_ended
    assert run.starts == 1
    assert keeper.controls[1:] == [b"K" + bytes([number]) for number in world.signals]
    assert keeper.is_done


@given(st.lists(HAPPENINGS, max_size=15), st.sampled_from([0, 7]), CUTS, st.booleans())
def test_a_connection_that_breaks_at_the_end_may_cost_time_but_no_output(
    happenings: list[Happening],
    code: int,
    cut: int,
    comes_again: bool,  # noqa: FBT001
) -> None:
    world = World()
    world.begins([])
    for happening in happenings:
        world.happens(happening)
    world.reconnects()
    world.run.keeper.ends(code)
    world.run.carry(breaks_after=cut)
    if comes_again and world.run.finish is None:
        world.ends(code)
    world.run.after(400.0)

    finish = world.run.finish
    assert finish is not None
    assert finish.code in (code, ExitCode.CONNECTION_LOST, ExitCode.NODE_LOST)
    assert not comes_again or finish == Finish(code)
    for stream, data in world.output.items():
        assert data.startswith(world.run.written(stream))
        assert finish.code != code or world.run.written(stream) == data


PARTS = st.tuples(st.integers(0, 8), st.integers(0, 8))


@pytest.mark.uncounted
@given(st.lists(st.tuples(st.integers(0, 2_500_000), PARTS, st.none() | CUTS), min_size=1, max_size=6))
def test_what_a_stuck_reader_keeps_waiting_is_bounded_over_any_number_of_connections(
    rounds: list[tuple[int, tuple[int, int], int | None]],
) -> None:
    world = World(has_stdin=False)
    world.begins([])
    for size, parts, cut in rounds:
        world.happens(writes(1, bytes(size)))
        world.happens(writes(2, bytes(size // 2)))
        world.happens(says_nothing)
        world.happens(writes_some_out(parts))
        world.happens(breaks(0))
        world.happens(comes_back(cut))
    world.ends(0)

    run = world.run
    assert run.finish == Finish(0)
    assert {stream: len(run.written(stream)) for stream in (1, 2)} == {
        stream: len(data) for stream, data in world.output.items()
    }


def refused(message: str, status: int) -> NotOpened:
    return NotOpened(ServerFailed("x", Failure(status, "", message, None, is_status=True)))


ANYTHING: list[Event] = [
    *(Opened(V4), NotOpened(ConnectionLost("refused")), refused("error dialing backend", 500), refused("", 503)),
    *(ApiAnswers(), ApiSilent("refused"), PodGone(), PodSeen(pods.HEALTHY), PodSeen(pods.DELETING)),
    *(PodSeen(pods.RESTARTED), PodSeen(pods.NODE_LOST), Signalled("TERM", 15), Signalled("USR1", 10)),
    *(out(b"nonsense"), err(b"complaint"), exit_status(0), exit_status(137)),
]


def meets(event: Event) -> Happening:
    def happen(world: World) -> None:
        world.run.feed(event)

    return happen


def waits(seconds: float) -> Happening:
    def happen(world: World) -> None:
        world.run.after(seconds)

    return happen


CHAOS: st.SearchStrategy[Happening] = st.one_of(
    st.builds(meets, st.sampled_from(ANYTHING)),
    st.builds(waits, st.sampled_from([0.05, 0.6, 3.0, 5.0, 15.0, 61.0])),
    st.builds(breaks, CUTS),
    st.just(says_nothing),
    st.builds(writes, st.sampled_from([1, 2]), st.binary(max_size=20)),
)


@given(st.lists(CHAOS, max_size=20), st.none() | st.sampled_from([0, 7]))
def test_whatever_happens_it_ends_and_with_0_only_by_the_keepers_word(
    happenings: list[Happening], code: int | None
) -> None:
    world = World(has_stdin=False)
    world.begins([])
    for happening in happenings:
        world.happens(happening)
    if code is not None:
        world.run.keeper.ends(code)
    if world.run.finish is None:
        world.run.carry()
    world.run.after(400.0)

    run = world.run
    assert run.finish is not None
    assert isinstance(run.actions[-1], Finish)
    assert run.starts == 1
    assert run.count(Dial) < 400
    for stream, data in world.output.items():
        assert data.startswith(run.written(stream))
        assert run.finish.code != 0 or (code == 0 and run.written(stream) == data)
