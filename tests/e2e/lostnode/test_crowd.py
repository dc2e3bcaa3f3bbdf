"""A node goes away with half of the commands of one switchboard: they end, and the others never notice."""

from __future__ import annotations

import pytest

from mpirt.errors import ExitCode
from tests.e2e.lostnode.commands import AGENT_ENDS_WITHIN
from tests.e2e.lostnode.conftest import Loss
from tests.e2e.lostnode.crowd import PODS, SESSIONS, Crowd
from tests.kube.wait import until
from tests.promises import promise

# Before the jobs, which take longer.
pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("own_cluster")]

# Far below the patience with a node: who waits for the lost one pauses for longer.
_LONGEST_PAUSE = 10.0


@promise(
    "A node that stops answering ends its commands with 249 within 30 s, and the message names it.", of="mpirt-rsh"
)
def test_the_agents_of_commands_that_were_there_end_and_say_why(loss: Loss) -> None:
    crowd = loss.crowd
    wait_for_the_end_of_the_lost_ones(crowd)

    ends = [crowd.ends[one] for one in crowd.lost]
    seconds = sorted(moment - loss.at for moment, _, _ in ends)
    print(f"{len(ends)} agents ended {seconds[0]:.1f} to {seconds[-1]:.1f} s after the loss of their node")
    assert len(crowd.switchboards) == 1
    assert len(ends) == PODS * SESSIONS
    assert {code for _, code, _ in ends} == {ExitCode.NODE_LOST}
    assert [errors for _, _, errors in ends if "node node-2 of pod crowd-node-2-" not in errors] == []
    assert seconds[-1] < AGENT_ENDS_WITHIN


@promise("When a node is lost, commands on other nodes go on without a pause.", of="mpirt-rsh")
def test_the_others_go_on_without_a_gap_and_end_by_themselves(loss: Loss) -> None:
    crowd = loss.crowd
    # By then the others have noticed whatever there is to notice.
    wait_for_the_end_of_the_lost_ones(crowd)
    assert not crowd.ends.keys() & set(crowd.kept)
    crowd.enough()
    until(lambda: crowd.have_ended(crowd.kept), within=60, what="the end of the others")

    pauses = [crowd.longest_pause(one) for one in crowd.kept]
    print(f"{len(pauses)} others: the longest pause between two lines was {max(pauses):.1f} s")
    assert {crowd.ends[one][1:] for one in crowd.kept} == {(0, "")}
    for one in crowd.kept:
        numbers = [number for _, number in crowd.numbers[one]]
        assert numbers == list(range(1, len(numbers) + 1))
    assert max(pauses) < _LONGEST_PAUSE


def wait_for_the_end_of_the_lost_ones(crowd: Crowd) -> None:
    until(lambda: crowd.have_ended(crowd.lost), within=2 * AGENT_ENDS_WITHIN, what="the agents' ends")
