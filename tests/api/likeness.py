"""
Whether a job that was disturbed comes to the state of one that was left in peace.

Owns: how long that may take. What a state is stands in states.py.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from testbed.kube.errors import ClusterError
from testbed.kube.wait import until
from tests.api.states import State, as_far_as_told, difference

# Several times what a change of leaders takes, and what the words that are kept back for a while wait.
SETTLES_WITHIN = 90.0


def lasting_difference(wanted: State, look: Callable[[], State], *, all_is_told: bool = True) -> str:
    """
    What differs once everything has had its time to become equal; empty if nothing does.

    `all_is_told`: whether Kubernetes could tell all that it did, or the API server was away.
    """

    def differs() -> str:
        found = look()
        return difference(wanted if all_is_told else as_far_as_told(wanted, found), found)

    def is_equal() -> bool:
        try:
            return not differs()
        except ClusterError:
            # A look that failed says nothing; the one after the wait has to succeed.
            return False

    with suppress(ClusterError):
        until(is_equal, within=SETTLES_WITHIN, what="the same state")
    return differs()


def state_when(look: Callable[[], State], is_it: Callable[[State], bool], what: str) -> State:
    """The first state of which that is true."""
    return until(
        lambda: found if is_it(found := look()) else (),
        within=SETTLES_WITHIN,
        what=what,
        instead=lambda: "\n".join(look()),
    )
