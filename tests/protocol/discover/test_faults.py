"""An API server that fails: the deadline is kept, nothing is printed, and the code says why."""

from __future__ import annotations

import json
import os
from contextlib import suppress

import pytest

from tests.apiserver.door import Deaf
from tests.apiserver.faults import Answer, Chunked, Fault, Hangup, Silence, Status, Then, Trickle
from tests.apiserver.pods import pod
from tests.apiserver.server import Honest
from tests.promises import promise
from tests.protocol.discover.program import AMPLE, JOB, Ended, Program, worker
from tests.protocol.discover.scenes import Scene

DEADLINE = "1.5"
# "did not answer within 1.5 s", or "no answer within 1.5 s" where the machine is too busy to say who did not.
LATE = "answer within 1.5 s"
# A loaded machine takes a while to start Python; a program that hangs takes for ever.
SLACK = 15.0

EXPIRED = Status(410, "Expired", "The provided continue parameter is too old")
FORBIDDEN = Status(403, "Forbidden", 'pods is forbidden: cannot list resource "pods"')


def page(*numbers: int, following: str = "") -> Answer:
    metadata = {"resourceVersion": "7", "continue": following}
    items = [pod(f"w-{number}", labels=JOB) for number in numbers]
    return Answer(200, json.dumps({"metadata": metadata, "items": items}).encode())


def does_not_know(ended: Ended, code: int, text: str) -> None:
    assert (ended.code, ended.output) == (code, ""), ended
    assert text in ended.last


def in_time(ended: Ended) -> bool:
    return ended.seconds < float(DEADLINE) + SLACK


def run(program: Program, *words: str, seconds: str = DEADLINE, **env: str) -> Ended:
    """A call that isn't the first, and so never waits."""
    env["MPIRT_DISCOVER_FIRST_TIMEOUT"] = "0"
    return program.job("--timeout", seconds, *words, env=env)


def listed(name: str, *faults: Fault) -> Scene:
    """A call whose questions are answered so, every one from the last on."""

    def act(program: Program) -> Ended:
        program.server.on("list", *faults[:-1])
        program.server.always("list", faults[-1])
        return run(program)

    return Scene(act, name)


def nobody_at_home(program: Program) -> Ended:
    program.server.at_the_door(Deaf())
    return run(program)


def a_plugin_that_hangs(program: Program) -> Ended:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sleep",
        "args": ["1000"],
        "interactiveMode": "Never",
    }
    return run(program, KUBECONFIG=str(program.server.kubeconfig(program.folder / "other", exec=plugin)))


def a_token_that_nobody_writes(program: Program) -> Ended:
    pipe = program.folder / "pipe"
    os.mkfifo(pipe)
    return run(program, KUBECONFIG=str(program.server.kubeconfig(program.folder / "other", tokenFile=str(pipe))))


def told_to_nobody(fault: Fault) -> Scene:
    """A call whose stderr nobody reads."""

    def act(program: Program) -> Ended:
        program.server.always("list", fault)
        reader, writer = os.pipe()
        try:
            fill(writer)
            return program.job("--timeout", DEADLINE, env={"MPIRT_DISCOVER_FIRST_TIMEOUT": "0"}, stderr=writer)
        finally:
            os.close(reader)
            os.close(writer)

    return Scene(act)


def fill(pipe: int) -> None:
    """Leave no room in a pipe; who writes to it waits."""
    os.set_blocking(pipe, False)
    with suppress(BlockingIOError):
        while True:
            os.write(pipe, b"x" * 4096)
    os.set_blocking(pipe, True)


def waiting_for_a_silent_server(program: Program) -> Ended:
    program.server.always("list", Silence())
    return run(program, "--wait", "3")


class TestAnAnswer:
    @promise(
        "mpirt-discover ends at its deadline, even if an answer never ends.",
        of="mpirt-discover",
        no_cluster="a real API server does not send such answers",
    )
    @pytest.mark.parametrize(
        "ended",
        [
            listed("half-open", Silence()),
            listed("a byte now and then", Trickle(page(0, 2))),
            listed("stops half-way", Chunked((b'{"items":[',), Then.HANG)),
        ],
        indirect=True,
        ids=str,
    )
    def test_that_does_not_end_is_not_waited_for(self, ended: Ended) -> None:
        does_not_know(ended, 244, LATE)
        assert in_time(ended)

    @pytest.mark.parametrize(
        ("fault", "code", "text"),
        [
            pytest.param(Hangup(), 244, "closed the connection", id="none at all"),
            pytest.param(Answer(200, page(0, 2).body[:-9]), 245, "is not JSON", id="truncated JSON"),
            pytest.param(FORBIDDEN, 242, "must hold list on pods", id="403"),
            pytest.param(Status(429, retry_after=60), 244, "overloaded", id="429 for longer than there is"),
            pytest.param(EXPIRED, 245, "out of date", id="410 every time"),
            pytest.param(page(0, following="more"), 245, "goes round in a circle", id="pages without end"),
        ],
    )
    def test_that_is_none_is_never_an_empty_list(
        self, program: Program, fault: Fault, code: int, text: str
    ) -> None:
        program.server.always("list", fault)

        does_not_know(run(program, seconds=AMPLE), code, text)

    def test_that_is_put_off_is_asked_for_again_in_time(self, program: Program) -> None:
        program.server.on("list", Status(429, "TooManyRequests", "slow down", retry_after=1))

        ended = program.job("--timeout", "20")

        assert (ended.code, ended.output) == (0, "w-0:1\nw-2:4\nw-10:1\n")
        assert len(program.server.asked("list")) == 2


class TestHalfAList:
    @promise(
        "mpirt-discover never prints an incomplete list.",
        of="mpirt-discover",
        no_cluster="a real API server does not send such answers",
    )
    @pytest.mark.parametrize(
        ("fault", "code", "text"),
        [
            pytest.param(FORBIDDEN, 242, "must hold list", id="then the Role is taken away"),
            pytest.param(Status(500, "InternalError", "etcd"), 244, "the API server failed", id="then 500"),
            pytest.param(Answer(200, b'{"metadata":'), 245, "is not JSON", id="then half of JSON"),
        ],
    )
    def test_is_never_printed(self, program: Program, fault: Fault, code: int, text: str) -> None:
        program.server.on("list", page(0, following="more"), fault)

        does_not_know(run(program, seconds=AMPLE), code, text)

    @pytest.mark.parametrize(
        "ended",
        [
            listed("then silence", page(0, following="more"), Silence()),
            listed("then a byte now and then", page(0, following="more"), Trickle(page(2))),
        ],
        indirect=True,
        ids=str,
    )
    def test_is_not_waited_for(self, ended: Ended) -> None:
        does_not_know(ended, 244, LATE)
        assert in_time(ended)

    def test_that_expires_in_the_middle_is_begun_again(self, program: Program) -> None:
        program.server.on("list", page(0, following="more"), EXPIRED)

        ended = program.job("--timeout", "20")

        assert (ended.code, ended.output) == (0, "w-0:1\nw-2:4\nw-10:1\n")


class TestAConnection:
    @pytest.mark.parametrize("ended", [Scene(nobody_at_home)], indirect=True, ids=str)
    def test_that_stays_half_open_is_not_waited_for(self, ended: Ended) -> None:
        does_not_know(ended, 244, LATE)
        assert in_time(ended)


class TestCredentials:
    @pytest.mark.parametrize("ended", [Scene(a_plugin_that_hangs)], indirect=True, ids=str)
    def test_of_a_plugin_that_hangs_are_not_waited_for(self, ended: Ended) -> None:
        # Where the machine is too busy to say in time who did not answer, the alarm's code.
        does_not_know(ended, 241 if "did not answer" in ended.last else 244, LATE)
        assert in_time(ended)

    @pytest.mark.parametrize("ended", [Scene(a_token_that_nobody_writes)], indirect=True, ids=str)
    def test_in_a_file_that_nobody_writes_are_not_waited_for(self, ended: Ended) -> None:
        does_not_know(ended, 244, LATE)
        assert in_time(ended)


class TestAReasonThatNobodyReads:
    @pytest.mark.parametrize(
        ("ended", "code"),
        [
            pytest.param(told_to_nobody(Silence()), 244, id="none came"),
            pytest.param(told_to_nobody(FORBIDDEN), 242, id="refused"),
        ],
        indirect=["ended"],
    )
    def test_does_not_keep_it_from_ending(self, ended: Ended, code: int) -> None:
        assert (ended.code, ended.output) == (code, "")
        assert in_time(ended)


class TestWaiting:
    def test_lets_errors_pass(self, program: Program) -> None:
        program.server.on("list", Status(503), Hangup(), FORBIDDEN, page(0), Honest())

        ended = program.job("--wait", "3", "--timeout", "40")

        assert (ended.code, ended.output) == (0, "w-0:1\nw-2:4\nw-10:1\n")

    @pytest.mark.parametrize("ended", [Scene(waiting_for_a_silent_server)], indirect=True, ids=str)
    def test_has_a_deadline_too(self, ended: Ended) -> None:
        does_not_know(ended, 244, LATE)

    def test_is_not_for_what_can_not_get_better(self, program: Program) -> None:
        program.server.world.put(worker(2, slots="many"))

        ended = program.job("--wait", "9", "--timeout", "600")

        assert ended.code == 241
