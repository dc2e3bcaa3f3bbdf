"""The delays between attempts."""

import pytest

from mpirt.backoff import Backoff


def test_delays_double_up_to_the_longest() -> None:
    backoff = Backoff(0.25, 5.0)

    assert [backoff.next() for _ in range(6)] == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0]


@pytest.mark.parametrize(("chance", "delay"), [(0.0, 1.0), (0.5, 1.5), (1.0, 2.0)])
def test_jitter_decides_on_half_of_each_delay(chance: float, delay: float) -> None:
    assert Backoff(2.0, 60.0, lambda: chance).next() == delay


def test_a_reset_begins_with_the_first_delay_again() -> None:
    backoff = Backoff(1.0, 60.0)
    backoff.next()
    backoff.next()

    backoff.reset()

    assert backoff.next() == 1.0


@pytest.mark.parametrize(
    ("asked", "most", "delay"),
    [(10.0, 60.0, 10.5), (0.2, 60.0, 1.5), (100.0, 60.0, 60.5)],
    ids=["longer than ours", "shorter than ours", "longer than it may"],
)
def test_a_servers_retry_after_is_honoured_with_half_of_our_own_delay_added(
    asked: float, most: float, delay: float
) -> None:
    assert Backoff(1.0, 60.0).next(asked, most=most) == delay


def test_a_thousand_failures_keep_the_longest_delay() -> None:
    backoff = Backoff(1.0, 60.0)

    delays = [backoff.next() for _ in range(1100)]

    assert delays[-1] == 60.0
