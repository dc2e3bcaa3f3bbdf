"""A node goes away with the pod of a command, or with the pod of its agent."""

from __future__ import annotations

import pytest

from mpirt.errors import ExitCode
from tests.e2e.lostnode.commands import AGENT_ENDS_WITHIN
from tests.e2e.lostnode.conftest import Loss
from tests.e2e.rsh.deaths import assert_one_line
from tests.kube.wait import Moment, until
from tests.promises import promise

# Before the jobs, which take longer.
pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("own_cluster")]

# A keeper that hears nothing on an open connection waits for 40 s, however short the lease is.
COMMAND_ENDS_WITHIN = 60.0


@promise(
    "A node that stops answering ends its commands with 249 within 30 s, and the message names it.", of="mpirt-rsh"
)
def test_the_agent_of_a_command_that_was_there_ends_and_says_why(loss: Loss) -> None:
    ended = loss.commands.agent.end(within=2 * AGENT_ENDS_WITHIN, since=loss.moment)

    print(f"node partitioned: {ended.code} after {ended.seconds:.1f} s")
    assert ended.code == ExitCode.NODE_LOST
    assert_one_line(ended, loss.commands.lost, "node")
    assert ended.seconds < AGENT_ENDS_WITHIN


@promise("A command whose launcher's pod or node is lost ends after its lease.", of="mpirt-rsh")
def test_a_command_whose_launcher_was_there_ends(loss: Loss) -> None:
    rest = COMMAND_ENDS_WITHIN - loss.moment.until(Moment.now())

    until(lambda: not loss.commands.kept_one_runs(), within=rest, what="the command's end")
