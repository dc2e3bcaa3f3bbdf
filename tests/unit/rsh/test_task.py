"""What a keeper is told to start, and how long a command that is to end has for that."""

from __future__ import annotations

import pytest

from mpirt.rsh.invocation.order import Order
from mpirt.rsh.session.ending import Grace
from mpirt.rsh.session.task import Task
from tests.unit.rsh.sessions import HOLDING


@pytest.mark.parametrize("length", [10, 300_000])
def test_another_shell_gets_the_command_where_it_is_asked_for(length: int) -> None:
    start = Task("w", Order("n1", b"x" * length, shell="/bin/bash"), HOLDING).start()

    assert b"/bin/bash" in start
    assert b"/bin/sh" not in start


def test_the_grace_depends_on_the_reason() -> None:
    assert (Grace().told, Grace().left) == (3, 30)


def test_a_grace_that_was_asked_for_counts_for_every_reason() -> None:
    assert (Grace(7).told, Grace(7).left) == (7, 7)


class TestTheGraceOfADeletedPod:
    @pytest.mark.parametrize(
        ("pods", "ours"),
        [
            pytest.param(30, 27, id="leaves time for the report"),
            pytest.param(7, 4, id="leaves time for the report, with little of it"),
            pytest.param(4, 2, id="is halved where that would leave nothing"),
            pytest.param(1, 0.5, id="is halved even when it is short"),
            pytest.param(0, 0, id="may be none"),
            pytest.param(None, 3, id="is our own where the pod does not say"),
        ],
    )
    def test_is_the_pods(self, pods: float | None, ours: float) -> None:
        assert Grace().deleted(pods) == ours

    @pytest.mark.parametrize(
        ("pods", "ours"),
        [
            pytest.param(30, 5, id="bounds the pod's"),
            pytest.param(4, 2, id="is not more than the pod has"),
            pytest.param(None, 5, id="counts where the pod does not say"),
        ],
    )
    def test_is_bounded_by_what_was_set(self, pods: float | None, ours: float) -> None:
        assert Grace(5).deleted(pods) == ours
