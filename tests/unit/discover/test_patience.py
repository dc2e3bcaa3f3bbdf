"""How often is asked, what is good enough, and what is said in the end. The clock moves only when we sleep."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mpirt.discover.discovery import Found, LeftOut
from mpirt.discover.patience import Patience, ask, missing, remarks
from mpirt.errors import ConfigError, MpirtError, NoPod, NotReady, PeerError, Refused, SpecError, UsageError
from mpirt.hosts import Host
from mpirt.kubeapi.access.steps import Deadline
from mpirt.kubeapi.request.answers import Failure, Overloaded, TimedOut

NONE = Found((), (LeftOut("w-0", "Pending"),))
ONE = Found((Host("w-0", 1),), ())
TWO = Found((Host("w-0", 1), Host("w-1", 1)), ())

PLAIN = Patience(4.0, 4.0)
FIRST = Patience(60.0, 4.0, enough=1, retries=True, refusals_pass=10.0)
WAITS = Patience(30.0, 4.0, enough=2, insists=True, retries=True, refusals_pass=10.0)


def busy(retry_after: float | None) -> Overloaded:
    return Overloaded("busy", Failure(429, "", "", retry_after, is_status=True))


class Asked:
    """One run: the answers, the last of them for ever; what was told, and when the questions came."""

    def __init__(self, patience: Patience, *answers: Found | MpirtError, sleeps_on: bool = False) -> None:
        """With `sleeps_on`, every pause is ended by whoever minds the time."""
        self.now = 0.0
        self._sleeps_on = sleeps_on
        self.told: list[str] = []
        self.moments: list[float] = []
        self.given: list[float] = []
        self._answers: Sequence[Found | MpirtError] = answers
        self.found: Found | None = None
        self.error: MpirtError | None = None
        try:
            self.found = ask(
                self._question, patience, clock=lambda: self.now, sleep=self._sleep, jitter=lambda: 1.0,
                tell=self.told.append,
            )  # fmt: skip
        except MpirtError as error:
            self.error = error

    def _question(self, deadline: Deadline) -> Found:
        answer = self._answers[min(len(self.moments), len(self._answers) - 1)]
        self.moments.append(self.now)
        self.given.append(deadline.left())
        if isinstance(answer, MpirtError):
            raise answer
        return answer

    def _sleep(self, seconds: float) -> None:
        assert seconds > 0
        if self._sleeps_on:
            raise TimedOut("late")
        self.now += seconds


class TestALaterCall:
    @pytest.mark.parametrize("found", [NONE, ONE])
    def test_takes_what_there_is(self, found: Found) -> None:
        asked = Asked(PLAIN, found)

        assert (asked.found, asked.moments, asked.given) == (found, [0.0], [4.0])

    @pytest.mark.parametrize(
        "error", [TimedOut("late"), Refused("no"), PeerError("x"), SpecError("a", "b"), busy(None)]
    )
    def test_says_at_once_that_it_does_not_know(self, error: MpirtError) -> None:
        asked = Asked(PLAIN, error)

        assert (asked.error, len(asked.moments)) == (error, 1)

    def test_comes_back_when_the_server_says_when(self) -> None:
        asked = Asked(PLAIN, busy(1.0), ONE)

        assert (asked.found, asked.moments) == (ONE, [0.0, 1.0])

    def test_does_not_when_that_is_too_late(self) -> None:
        error = busy(4.0)
        asked = Asked(PLAIN, error)

        assert (asked.error, asked.moments) == (error, [0.0])


class TestAFirstCall:
    def test_waits_for_a_host(self) -> None:
        asked = Asked(FIRST, NONE, NONE, ONE)

        assert asked.found == ONE
        assert asked.moments == [0.0, 0.25, 0.75]
        assert asked.told == ["0 of 1 workers are Ready; w-0: Pending"] * 2

    @pytest.mark.parametrize("error", [TimedOut("late"), NoPod("none"), PeerError("x"), busy(None), Refused("no")])
    def test_lets_pass_what_may_pass(self, error: MpirtError) -> None:
        asked = Asked(FIRST, error, ONE)

        assert (asked.found, asked.told) == (ONE, [str(error)])

    @pytest.mark.parametrize("error", [ConfigError("x"), UsageError("x"), SpecError("a", "b")])
    def test_gives_up_at_once_where_nothing_will_pass(self, error: MpirtError) -> None:
        assert Asked(FIRST, error, ONE).error == error

    def test_takes_no_hosts_for_an_answer_in_the_end(self) -> None:
        asked = Asked(FIRST, NONE)

        assert asked.found == NONE
        assert (asked.moments[-1], max(asked.given), asked.given[-1]) == (59.5, 4.0, 0.5)
        # Once a second at most.
        assert len(asked.moments) < 64

    def test_does_not_know_in_the_end(self) -> None:
        error = TimedOut("late")
        asked = Asked(FIRST, error)

        assert (asked.error, asked.moments[-1]) == (error, 59.5)

    def test_believes_a_refusal_after_a_while(self) -> None:
        asked = Asked(FIRST, Refused("no"))

        assert 10.0 <= asked.moments[-1] <= 11.0

    @pytest.mark.parametrize("before", [NONE, TimedOut("late")])
    def test_lets_a_late_refusal_pass_too(self, before: Found | MpirtError) -> None:
        asked = Asked(FIRST, Refused("no"), *[before] * 20, *[Refused("no")] * 9, ONE)

        assert asked.found == ONE
        assert asked.moments[21] > 10.0

    def test_believes_a_late_refusal_after_a_while(self) -> None:
        asked = Asked(FIRST, *[NONE] * 20, Refused("no"))

        assert isinstance(asked.error, Refused)
        assert 10.0 <= asked.moments[-1] - asked.moments[20] <= 11.0


class TestWaiting:
    def test_is_for_all_of_them(self) -> None:
        asked = Asked(WAITS, NONE, ONE, TWO)

        assert asked.found == TWO
        assert asked.told == [
            "0 of 2 workers are Ready; w-0: Pending, 1 not created yet",
            "1 of 2 workers are Ready; 1 not created yet",
        ]

    def test_in_vain_ends_with_who_is_missing(self) -> None:
        asked = Asked(WAITS, ONE)

        assert isinstance(asked.error, NotReady)
        assert str(asked.error) == "1 of 2 workers are Ready; 1 not created yet; gave up after 30 s"

    def test_that_ends_without_an_answer_tells_what_was_known_before(self) -> None:
        late = TimedOut("late")

        assert str(Asked(WAITS, ONE, *[late] * 99).error) == "late"
        assert isinstance(Asked(Patience(0.6, 4.0, 2, insists=True, retries=True), ONE, late).error, NotReady)
        assert Asked(Patience(0.6, 4.0, 1, retries=True), NONE, late).found == NONE
        assert Asked(Patience(0.6, 4.0, 1, retries=True), busy(None), late).error != late

    def test_whose_pause_outlasts_the_time_tells_what_was_known_before(self) -> None:
        asked = Asked(WAITS, ONE, TWO, sleeps_on=True)

        assert isinstance(asked.error, NotReady)
        assert len(asked.moments) == 1


def test_of_many_that_are_missing_the_first_are_named() -> None:
    found = Found((), tuple(LeftOut(f"w-{number}", "Pending") for number in range(10)))

    assert missing(found, 10).endswith("w-7: Pending, 2 more")


class TestWhatIsSaidInTheEnd:
    LEFT_OUT = Found((Host("w-1", 1),), (LeftOut("w-0", "Pending"),))

    def test_is_why_there_are_no_hosts_where_the_call_waited_for_some(self) -> None:
        assert remarks(NONE, FIRST, verbose=False) == ["no hosts: 0 of 1 workers are Ready; w-0: Pending"]
        assert remarks(NONE, PLAIN, verbose=False) == []

    def test_is_nothing_where_there_are_hosts_but_for_who_wants_to_know_all(self) -> None:
        assert remarks(self.LEFT_OUT, FIRST, verbose=False) == []
        assert remarks(self.LEFT_OUT, FIRST, verbose=True) == ["left out: w-0: Pending"]
