"""The judge of a training's log: what it accepts, and that it finds each broken promise."""

from __future__ import annotations

import pytest

from tests.e2e.elastic.steps import Line, broken_promises, repeated, step_of, time_for_a_death


def log(*said: int | str) -> list[Line]:
    """The lines of a training: steps by their numbers, "5>" for a world that began with step 5, or any text."""
    return [Line(0.0, f"[0]<stdout>:{_said(one)}") for one in said]


def _said(one: int | str) -> str:
    if isinstance(one, int):
        return f"step={one} size=2 rank0=worker-0 committed={'no' if one % 5 else 'yes'} loss=1.0"
    return f"resumed={one[:-1]} size=2 rank0=worker-0" if one.endswith(">") else one


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(("0>", 1, 2, "another's line", 3, 4, 5, 6), id="one after the other"),
        pytest.param(("0>", 1, 2, "0>", 1, 2, 3, 4, 5), id="begun again before the first commit"),
        pytest.param(("0>", 1, 2, 3, 4, 5, 6, 7, "5>", 6, 7, 8), id="begun again behind a commit"),
        pytest.param(("0>", 1, 2, 3, 4, 5, "5>", 6), id="hosts that changed at a commit"),
        pytest.param(("0>", 1, 2, 3, 4, "5>", 6), id="a death between a commit and its line"),
        pytest.param(("0>", 1, "0>", "0>", 1), id="a world that ends before its first step"),
    ],
)
def test_a_sound_training_breaks_no_promise(said: tuple[int | str, ...]) -> None:
    assert broken_promises(log(*said)) == []


@pytest.mark.parametrize(
    ("said", "broken"),
    [
        pytest.param(("0>", 1, 2, 3, 4, 5, 6, 6), "step 6 after step 6", id="a step is repeated"),
        pytest.param(("0>", 1, 2, 3, 4, 6), "step 6 after step 4", id="a commit is skipped"),
        pytest.param(("0>", 1, 2, 1), "step 1 after step 2", id="begun again without a word"),
        pytest.param(
            ("0>", 1, 2, 3, 4, 5, 6, "0>", 1),
            "resumed at 0 after step 6, when 5 was committed",
            id="a commit is forgotten",
        ),
        pytest.param(
            ("0>", 1, 2, 3, 4, 5, 6, "7>", 8),
            "resumed at 7 after step 6, when 5 was committed",
            id="resumed where nothing was committed",
        ),
        pytest.param(
            ("0>", 1, 2, 3, "5>", 6), "resumed at 5 after step 3, when 0 was committed", id="steps are skipped"
        ),
        pytest.param(
            ("0>", 1, 2, 3, 4, "step=5 size=2 rank0=w committed=no loss=1"),
            "step 5 has committed=False",
            id="a commit is not told",
        ),
    ],
)
def test_a_broken_promise_is_named(said: tuple[int | str, ...], broken: str) -> None:
    assert broken_promises(log(*said)) == [broken]


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(
            "terminate called after throwing an instance of 'gloo::EnforceNotMet'", id="another is ended"
        ),
        pytest.param("exception: [buffer.cc:81] Timed out waiting 30000ms for recv operation", id="another waits"),
    ],
)
def test_a_death_has_more_time_where_gloo_breaks_down(told: str) -> None:
    assert time_for_a_death(log("0>", 1, told), usual=10.0) > 10.0


@pytest.mark.parametrize(
    "told",
    [
        pytest.param("Aborted", id="a worker ends"),
        pytest.param("exception: [pair.cc:598] Connection closed by peer", id="the others notice"),
        pytest.param("Timed out waiting for hosts", id="too few hosts"),
    ],
)
def test_a_death_has_its_usual_time_otherwise(told: str) -> None:
    assert time_for_a_death(log("0>", 1, told), usual=10.0) == 10.0


@pytest.mark.parametrize(
    ("said", "again"),
    [
        pytest.param(("0>", 1, 2, 3, 4, 5, 6), [], id="none"),
        pytest.param(("0>", 1, 2, 3, 4, 5, 6, 7, "5>", 6, 7, 8), [6, 7], id="those since the last commit"),
        pytest.param(("0>", 1, 2, "0>", 1, "0>", 1, 2, 3), [1, 1, 2], id="one of them twice"),
        pytest.param((), [], id="no step at all"),
    ],
)
def test_all_steps_that_were_done_again_are_named(said: tuple[int | str, ...], again: list[int]) -> None:
    assert repeated([step for step in map(step_of, log(*said)) if step is not None]) == again
