"""How many commands dial at a time, and how they wait."""

from __future__ import annotations

import threading
import time

from tests.apiserver.faults import Silence, Status
from tests.apiserver.server import Gated
from tests.apiserver.shell import End
from tests.protocol.switchboard.yard import Yard


def test_no_more_than_32_dial_at_a_time(yard: Yard) -> None:
    yard.begin()
    gate = threading.Event()
    yard.server.always("exec", Gated(gate))
    lives = [yard.live(f"exit {number}") for number in range(1, 101)]
    yard.server.wait_for("exec", 32)
    # Whoever was there before has had its turn when this one is answered.
    assert yard.agent("--", on="--version").end().output.startswith(b"mpirt-rsh ")
    assert len(yard.server.asked("exec")) == 32
    gate.set()

    found = [life.end() for life in lives]
    assert [(command.code, command.said) for command in found] == [(number, []) for number in range(1, 101)]


def test_dials_that_hang_hold_up_the_others_for_their_own_time_only(yard: Yard) -> None:
    yard.begin()
    yard.server.on("exec", *[Silence()] * 32)
    lives = [yard.live("exit 3") for _ in range(32)]
    yard.server.wait_for("exec", 32)
    begin = time.monotonic()
    assert yard.agent("exit 4").end().code == 4

    assert time.monotonic() - begin < 25
    assert [life.end().code for life in lives] == [3] * 32


def test_dials_of_running_commands_that_hang_hold_up_the_others_for_a_second_only(yard: Yard) -> None:
    """Their nodes are gone, and those of others are well."""
    yard.begin()
    go = yard.folder / "go"
    lives = [yard.live(f"echo begun; until [ -e {go} ]; do sleep 0.2; done; exit 4") for _ in range(33)]
    for life in lives:
        life.until(lambda command: bool(command.output))
    yard.server.on("exec", *[Silence()] * 32)
    for number in range(33):
        yard.server.wait_for_session(number + 1).end(End.RESET)
    yard.server.wait_for("exec", 33 + 32)
    begin = time.monotonic()
    yard.server.wait_for("exec", 33 + 33)

    # A dial that hangs has ten.
    assert time.monotonic() - begin < 8
    go.touch()
    assert [life.end().code for life in lives] == [4] * 33


def test_a_server_that_asks_for_time_gets_it_from_all_that_come_new(yard: Yard) -> None:
    yard.begin()
    yard.server.on("exec", Status(429, "TooManyRequests", "later", retry_after=3))
    first = yard.agent("exit 3", MPIRT_LOG="debug")
    begin = time.monotonic()
    first.until(lambda command: any("overloaded" in line for line in command.said))
    lives = [yard.live("exit 4") for _ in range(5)]
    yard.server.wait_for("exec", 2)

    assert time.monotonic() - begin >= 2.9
    assert first.end().code == 3
    assert [life.end().code for life in lives] == [4] * 5


def test_a_server_that_asks_for_time_does_not_get_it_from_another_clusters_commands(yard: Yard) -> None:
    yard.begin()
    yard.server.on("exec", Status(429, "TooManyRequests", "later", retry_after=20))
    first = yard.agent("exit 3", MPIRT_LOG="debug")
    first.until(lambda command: any("overloaded" in line for line in command.said))
    other = yard.server.kubeconfig(yard.folder / "other")

    assert yard.agent("exit 5", KUBECONFIG=str(other)).end().code == 5
