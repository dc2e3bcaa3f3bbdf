"""Shells whose exec has ended before it sent anything: a keeper in the same container ends them, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpirt.rsh.protocol.entrance import BOOTSTRAP
from tests.unit.keeper.client import DEADLINE
from tests.unit.keeper.container import Container, Shell, Words

pytestmark = pytest.mark.usefixtures("root")


def test_a_shell_that_was_left_is_ended(container: Container, hasty: Path) -> None:
    left = [container.shell(), container.shell()]

    container.run(hasty)

    for shell in left:
        shell.wait(DEADLINE)


def test_one_that_may_still_be_spoken_to_is_not(container: Container, keeper: Path) -> None:
    young = container.shell()

    container.run(keeper)

    assert answers(young)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param((*BOOTSTRAP, "more"), id="with another word"),
        pytest.param((*BOOTSTRAP[:2], 'IFS= read -r MPIRT && eval "$MPIRT"'), id="of another name"),
        pytest.param((*BOOTSTRAP[:2], 'read -r mpirt; eval "$mpirt"'), id="other words"),
    ],
)
def test_another_shell_is_not(container: Container, hasty: Path, words: Words) -> None:
    other = container.shell(words)

    container.run(hasty)

    assert answers(other)


def test_one_that_something_in_the_container_has_started_is_not(container: Container, hasty: Path) -> None:
    script = f"'{BOOTSTRAP[0]}' -c '{BOOTSTRAP[2]}'; :"
    parent = container.shell(("/bin/sh", "-c", script))

    container.run(hasty)

    assert answers(parent)


def answers(shell: Shell) -> bool:
    """Whether it does what it is told."""
    assert shell.stdin is not None
    assert shell.stdout is not None
    shell.stdin.write(b"echo here\n")
    return shell.stdout.readline() == b"here\n"
