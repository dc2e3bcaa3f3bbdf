"""What the judge of an endurance run finds wrong, and what it does not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from mpirt.errors import ExitCode
from tests.e2e.endurance import judging, visits
from tests.e2e.endurance.judging import End, Fate, Lap
from tests.e2e.endurance.visits import Kind, Visit

VISIT = Visit(number=0, comes=0.0, kind=Kind.COUNTS, amount=3, code=0, read_after=0.0)
GOOD = End(VISIT, None, 0, b"1\n2\n3\n", "")
FAILED = End(replace(VISIT, kind=Kind.FAILS, amount=0, code=77), None, 77, b"", "")
DELETED = End(VISIT, Fate.POD_DELETED, ExitCode.POD_DELETED, b"1\n", "pod w-0 was deleted")
KILLED = End(VISIT, Fate.AGENT_KILLED, -9, b"1\n2\n3\n", "")
STEADY = [Lap(switchboard=7, memory=memory, agents=200, descriptors=10, threads=1, remote=88) for memory in (
    20_000, 30_000, 31_000, 30_900, 31_100, 31_000, 31_050, 31_000, 30_900, 31_000, 31_100, 31_000
)]  # fmt: skip


@pytest.mark.parametrize("end", [GOOD, FAILED, DELETED, KILLED], ids=["its own", "a code", "a death", "killed"])
def test_ends_that_are_right(end: End) -> None:
    assert judging.problem(end) == ""


@pytest.mark.parametrize(
    ("end", "says"),
    [
        (replace(GOOD, output=b"1\n2\n"), "code 0 after 4 of 6 bytes"),
        (replace(GOOD, output=b"1\n2\n3\n3\n"), "not the command's"),
        (replace(GOOD, code=None), "did not end"),
        (replace(GOOD, errors="odd words"), "odd words"),
        (replace(GOOD, code=ExitCode.CONNECTION_LOST, output=b"1\n", errors="lost"), "code 250"),
        (replace(FAILED, code=0), "code 0"),
        (replace(DELETED, code=0), "code 0 after 2"),
        (replace(DELETED, code=ExitCode.NODE_LOST), "code 249"),
        (replace(DELETED, fate=None), "code 246"),
    ],
)
def test_ends_that_are_wrong(end: End, says: str) -> None:
    assert says in judging.problem(end)


def test_an_unchanged_value_is_no_growth() -> None:
    assert list(judging.growth(STEADY)) == []


@pytest.mark.parametrize("what", ["descriptors", "threads"])
def test_an_increase_that_lasts_is_growth(what: str) -> None:
    more = [changed(lap, what, getattr(lap, what) + 1) for lap in STEADY[6:]]

    [found] = judging.growth([*STEADY[:6], *more])

    assert found.startswith(f"{what}: ")


@pytest.mark.parametrize("what", ["descriptors", "threads"])
def test_an_increase_for_one_lap_is_no_growth(what: str) -> None:
    more = changed(STEADY[7], what, getattr(STEADY[7], what) + 1)

    assert list(judging.growth([*STEADY[:7], more, *STEADY[8:]])) == []


@pytest.mark.parametrize("what", ["memory", "agents"])
def test_memory_that_rises_from_lap_to_lap_is_growth(what: str) -> None:
    rising = [changed(lap, what, int(getattr(lap, what) * 1.02**n)) for n, lap in enumerate(STEADY)]

    [found] = judging.growth(rising)

    assert found.startswith(f"{what}: ")


def test_two_laps_tell_nothing() -> None:
    assert list(judging.growth([STEADY[0], changed(STEADY[1], "descriptors", 12)])) == []


def changed(lap: Lap, what: str, figure: int) -> Lap:
    found = replace(lap)
    setattr(found, what, figure)
    return found


def test_a_killed_switchboards_figures_are_not_its_successors() -> None:
    first = replace(STEADY[0], switchboard=6, memory=90_000, descriptors=5)

    assert list(judging.growth([first, *STEADY[1:]])) == []


def test_a_seed_makes_the_same_commands_again_of_every_kind_and_five_a_second() -> None:
    found = list(visits.of("a", 60))

    assert found == list(visits.of("a", 60))
    assert found != list(visits.of("b", 60))
    assert len(found) == 300
    assert set(Counter(visit.kind for visit in found)) == set(Kind)
    assert [visit.comes for visit in found] == sorted(visit.comes for visit in found)


@pytest.mark.parametrize(
    ("kind", "amount", "script", "output"),
    [
        (Kind.WRITES, 5, "head -c 5", b"01234"),
        (Kind.READS, 5, "cat", b"01234"),
        (Kind.COUNTS, 2, "-lt 2", b"1\n2\n"),
        (Kind.FAILS, 0, "exit 0", b""),
    ],
)
def test_each_kind_of_visit_has_its_script_and_streams(
    kind: Kind, amount: int, script: str, output: bytes
) -> None:
    visit = replace(VISIT, kind=kind, amount=amount)

    assert script in visit.script
    assert visit.output == output
    assert visit.stdin == (output if kind is Kind.READS else b"")


def test_a_lap_is_a_row_of_the_table() -> None:
    lap = replace(STEADY[0], faults=["pod deleted"], seconds=61.2, at_once=40)
    for end in (GOOD, FAILED, DELETED):
        lap.note(end)

    assert judging.row(1, lap) == [
        *("1", "61", "3", "40", "7", "20000", "200", "10", "1", "88"), "its own 2, code 246 1", "pod deleted",
    ]  # fmt: skip
    assert len(judging.HEADING) == len(judging.row(1, lap))
