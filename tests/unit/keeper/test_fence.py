"""What earlier launchers of a job have left ends before a later one's command starts."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path

import pytest

from tests.unit.keeper.client import Agent, Broken, Kind, Start, socket_of
from tests.unit.keeper.container import is_alive

Claim = Mapping[str, int]


@pytest.fixture
def make(keeper: Path, apart: Sequence[str]) -> Iterator[Callable[[], Agent]]:
    """Makes sessions of one container."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Agent(keeper, prefix=apart))


def lives(agent: Agent) -> bool:
    """Whether its command, a cat, is still there."""
    try:
        agent.send(agent.frame(Kind.STDIN, 0, b"lives"), agent.frame(Kind.STDIN_END, 5))
        agent.until_exit()
    except Broken:
        return False
    return agent.out == b"lives"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        pytest.param({"attempt": 3}, {"attempt": 4}, id="of a lower attempt"),
        pytest.param({"launcher": 2**64 - 1}, {"launcher": 1}, id="of another launcher"),
        pytest.param({"attempt": 3}, {"launcher": 1}, id="of an attempt when attempts are no longer given"),
        pytest.param({"launcher": 1}, {"attempt": 3}, id="of a launcher when attempts are given from now on"),
    ],
)
def test_an_earlier_command_is_killed_before_the_later_one_starts(
    make: Callable[[], Agent], earlier: Claim, later: Claim
) -> None:
    first = make()
    started = first.start("/bin/sh", "-c", 'trap "" TERM; sleep 1000 & wait', job="ns/train", **earlier)
    second = make()

    second.start("/bin/ls", "-d", f"/proc/{started.number}", "/dev/shm", job="ns/train", **later)
    second.until_exit()

    assert second.out == b"/dev/shm\n"
    with pytest.raises(Broken):
        first.until(Kind.EXIT)


@pytest.mark.parametrize(
    ("job", "first_claim", "second_claim"),
    [
        pytest.param("ns/train", {"attempt": 3}, {"attempt": 3}, id="the same attempt"),
        pytest.param("ns/train", {"attempt": 3}, {"attempt": 2}, id="an earlier attempt"),
        pytest.param("ns/train", {"launcher": 7}, {"launcher": 7}, id="the same launcher"),
        pytest.param("ns/train", {}, {}, id="launchers of which nothing is known"),
        pytest.param("ns/train2", {"attempt": 3}, {"attempt": 9}, id="another job"),
        pytest.param("ns/trai", {"launcher": 7}, {"launcher": 9}, id="a job that begins alike"),
    ],
)
def test_nobody_else_is_fenced(
    make: Callable[[], Agent], job: str, first_claim: Claim, second_claim: Claim
) -> None:
    first = make()
    first.start("/bin/cat", has_stdin=True, job="ns/train", **first_claim)
    idle = make()
    second = make()

    second.start("/bin/echo", "here", job=job, **second_claim)
    second.until_exit()

    assert lives(first)
    assert second.out == b"here\n"
    assert idle.start("/bin/true").kind is Kind.STARTED


def test_a_command_whose_keeper_is_busy_is_killed_all_the_same(keeper: Path) -> None:
    """It is stopped, and many connections wait in its queue that were given up since."""
    with Agent(keeper) as first, Agent(keeper) as second:
        started = first.start("/bin/sleep", "1000", job="ns/busy", launcher=1)
        os.kill(first.keeper_pid, signal.SIGSTOP)
        for _ in range(100):
            with socket.socket(socket.AF_UNIX) as caller:
                caller.settimeout(0)
                caller.connect(socket_of(first.nonce))

        second.attach()
        second.send(second.control(b"S" + bytes(Start(("/bin/sleep", "1000"), job="ns/busy", launcher=2))))
        with pytest.raises(TimeoutError):
            second.until(Kind.STARTED, within=0.3)
        os.kill(first.keeper_pid, signal.SIGCONT)
        second.until(Kind.STARTED)

        assert not is_alive(started.number)
        first.until_broken()


def courses(count: int) -> list[tuple[int, ...]]:
    """
    All orders in which so many sessions can be made and started: a number is there twice, for both.

    They are made in the order of their numbers: no session is made for a launcher that has ended.
    """
    events = sorted([*range(count), *range(count)])
    return sorted(
        {course for course in permutations(events) if list(dict.fromkeys(course)) == sorted(set(course))}
    )


@pytest.mark.parametrize("course", courses(3), ids=lambda course: " ".join(map(str, course)))
def test_the_latest_launcher_keeps_its_command_and_no_earlier_one_does_in_whatever_order_they_start(
    make: Callable[[], Agent], course: Sequence[int]
) -> None:
    made: list[Agent] = []
    started: list[int] = []
    for number in course:
        if number == len(made):
            made.append(make())
            continue
        answer = made[number].start("/bin/cat", has_stdin=True, job="ns/train", launcher=9 - number)
        is_overtaken = any(other > number for other in started)
        assert answer.kind is (Kind.FAILED if is_overtaken else Kind.STARTED)
        if not is_overtaken:
            started.append(number)

    assert [number for number in started if lives(made[number])] == [2]


def test_a_folder_whose_keeper_was_killed_is_removed_by_the_next_fence(make: Callable[[], Agent]) -> None:
    first = make()
    first.start("/bin/sleep", "1000")
    os.kill(first.keeper_pid, 9)
    first.until_broken()
    second = make()

    second.start("/bin/sh", "-c", "ls /dev/shm; mkdir /dev/shm/mpirt-notasession", job="ns/train", attempt=1)
    second.until_exit()

    assert second.out.decode().split() == [f"mpirt-{second.nonce}"]


def test_a_folder_without_a_socket_is_left_alone_by_the_fence(
    apart: Sequence[str], make: Callable[[], Agent]
) -> None:
    subprocess.run([*apart, "mkdir", "/dev/shm/mpirt-aaaaaaaa"], check=True)
    subprocess.run([*apart, "touch", "/dev/shm/mpirt-bbbbbbbb"], check=True)
    agent = make()

    agent.start("/bin/ls", "/dev/shm", job="ns/train", attempt=1)
    agent.until_exit()

    assert set(agent.out.decode().split()) == {"mpirt-aaaaaaaa", "mpirt-bbbbbbbb", f"mpirt-{agent.nonce}"}


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        pytest.param({"attempt": 3}, {"attempt": 4}, id="a higher attempt"),
        pytest.param({"launcher": 9}, {"launcher": 7}, id="a session made later"),
    ],
)
def test_a_command_is_refused_when_a_later_launcher_has_begun_whatever_other_jobs_have_started_since(
    make: Callable[[], Agent], earlier: Claim, later: Claim
) -> None:
    late, second, other = [make() for _ in range(3)]
    second.start("/bin/cat", has_stdin=True, job="ns/train", **later)
    other.start("/bin/cat", has_stdin=True, job="ns/other", **later)

    failed = late.start("/bin/true", job="ns/train", **earlier)

    assert (failed.kind, failed.payload) == (Kind.FAILED, b"a later launcher of its job has begun")
