"""The judge of a training's log: what it accepts, and that it finds each broken promise."""

from __future__ import annotations

import pytest

from tests.e2e.elastic.steps import Line, Step, broken_promises, line_of, step_of, worlds


def steps(*numbers: int) -> list[Step]:
    return [Step(0.0, number, 2, "worker-0", number % 5 == 0) for number in numbers]


def test_a_line_has_the_moment_that_kubectl_says() -> None:
    line = line_of("2026-11-21T00:00:01.250000000Z [0]<stdout>:step=1")

    assert line == Line(1795219201.25, "[0]<stdout>:step=1")


def test_a_step_is_read_behind_horovodruns_prefix() -> None:
    line = Line(7.0, "[3]<stdout>:step=120 size=3 rank0=worker-1 committed=yes loss=0.0421")

    assert step_of(line) == Step(7.0, 120, 3, "worker-1", committed=True)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[1]<stderr>:mpirt-rsh: pod worker-3 is being deleted", id="an agent's word"),
        pytest.param("step=1 size=2 rank0=worker-0 committed=no loss=1.0", id="not from a worker"),
    ],
)
def test_other_lines_are_no_steps(text: str) -> None:
    assert step_of(Line(0.0, text)) is None


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param((1, 2, 3, 4, 5, 6), id="one after the other"),
        pytest.param((1, 2, 1, 2, 3, 4, 5), id="begun again before the first commit"),
        pytest.param((1, 2, 3, 4, 5, 6, 7, 6, 7, 8), id="begun again behind a commit"),
    ],
)
def test_a_sound_training_breaks_no_promise(numbers: tuple[int, ...]) -> None:
    assert broken_promises(steps(*numbers)) == []


@pytest.mark.parametrize(
    ("numbers", "broken"),
    [
        pytest.param(
            (1, 2, 3, 4, 5, 6, 5), "step 5 after step 6, when 5 was committed", id="a committed step is repeated"
        ),
        pytest.param((1, 2, 3, 4, 6), "step 6 after step 4, when 0 was committed", id="a commit is skipped"),
        pytest.param((1, 2, 3, 4, 5, 1), "step 1 after step 5, when 5 was committed", id="all is forgotten"),
    ],
)
def test_a_broken_promise_is_named(numbers: tuple[int, ...], broken: str) -> None:
    assert broken_promises(steps(*numbers)) == [broken]


def test_a_commit_that_is_not_told_is_a_broken_promise() -> None:
    silent = [*steps(1, 2, 3, 4), Step(0.0, 5, 2, "worker-0", committed=False)]

    assert broken_promises(silent) == ["step 5 has committed=False"]


def test_worlds_are_told_one_after_the_other() -> None:
    sizes = [
        Step(0.0, number, size, "worker-0", committed=False) for number, size in enumerate((2, 2, 4, 3, 3, 4))
    ]

    assert worlds(sizes) == [2, 4, 3, 4]
