"""A small run of the fuzzer; the large one is `python -m tests.unit.keeper.fuzz --inputs 1000000`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import sizes
from tests.unit.keeper.client import Kind
from tests.unit.keeper.fuzz import compile_keeper, fuzz, fuzz_starts, session


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A keeper that stops at the first thing that C leaves undefined."""
    return compile_keeper(tmp_path_factory.mktemp("sanitized"))


def test_a_keeper_survives_random_and_mutated_frames(sanitized: Path) -> None:
    fuzz(sanitized, inputs=sizes.of(merge=300, full=3000), seed=20, checks=10)


def test_a_keeper_answers_every_broken_start_with_failed(sanitized: Path) -> None:
    fuzz_starts(sanitized, inputs=30, seed=21)


def test_the_fuzzer_would_notice_a_command_that_ended(sanitized: Path) -> None:
    with session(sanitized) as agent:
        agent.end(9, grace=0)

        assert agent.until(Kind.EXIT).payload[:2] == b"\1\x09"
