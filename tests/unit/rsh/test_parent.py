"""When the end of the process that started us counts as a HUP."""

from __future__ import annotations

import pytest

from mpirt.rsh.ports.loop import FOR_EVER
from mpirt.rsh.ports.signals import Parent

LAUNCHER, INIT = 100, 1


class Ground:
    """A clock, and the pid of whoever is the parent now."""

    def __init__(self, *, grace: float = 5.0) -> None:
        self.now, self.pid = 0.0, LAUNCHER
        self.parent = Parent(lambda: grace, clock=lambda: self.now, getppid=lambda: self.pid)


def test_one_that_is_there_is_looked_at_again() -> None:
    ground = Ground()

    assert (ground.parent.is_hup(), ground.parent.timeout()) == (False, 2.0)


def test_its_end_is_a_hup_after_the_grace() -> None:
    ground = Ground()
    ground.pid = INIT
    assert ground.parent.timeout() == 0.0
    assert (ground.parent.is_hup(), ground.parent.timeout()) == (False, 5.0)
    ground.now = 4.5
    assert (ground.parent.is_hup(), ground.parent.timeout()) == (False, 0.5)
    ground.now = 5.0

    assert ground.parent.is_hup()


@pytest.mark.parametrize("pid", [INIT, LAUNCHER], ids=["as it was", "the number is in use again"])
def test_the_hup_comes_once(pid: int) -> None:
    ground = Ground(grace=0.0)
    ground.pid = INIT
    assert ground.parent.is_hup()
    ground.pid, ground.now = pid, 60.0

    assert (ground.parent.is_hup(), ground.parent.timeout()) == (False, FOR_EVER)


def test_without_a_grace_it_is_one_at_once() -> None:
    ground = Ground(grace=0.0)
    ground.pid = INIT

    assert ground.parent.is_hup()
