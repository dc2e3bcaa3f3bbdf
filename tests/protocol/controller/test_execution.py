"""Programs that the controller runs in pods, and what it makes of their answers."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from mpirt.controller.cluster.link import Away
from mpirt.controller.cluster.questions import COMMAND, Output, PodExecutor, Questions
from mpirt.controller.model.actions import Answer, Question
from mpirt.controller.model.spec import JobKey
from mpirt.kubeapi.access.endpoint import Endpoint
from tests.apiserver.channel import SUCCESS, V4, Channel, exit_status, internal_error
from tests.apiserver.faults import Hangup, Silence, Status
from tests.apiserver.peer import Peer
from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer

KEY = JobKey("TrainingJob", "ml", "train")
ASKED = Question("w-0", "uid-of-w-0", "worker")


@pytest.fixture(autouse=True)
def _worker(apiserver: ApiServer) -> None:
    apiserver.world.put(pod("w-0"))


@pytest.fixture
def executor(endpoint: Endpoint) -> PodExecutor:
    return PodExecutor(lambda: endpoint)


def run(executor: PodExecutor, script: str, *, within: float = 20.0) -> Output:
    return executor.run("ml", "w-0", "worker", ("/bin/sh", "-c", script), within=within)


class TestAProgram:
    def test_has_its_output_and_its_code(self, executor: PodExecutor) -> None:
        assert run(executor, "echo out; echo err >&2; exit 3") == Output("out\n", 3)
        assert run(executor, "echo fine") == Output("fine\n", 0)

    def test_is_run_where_only_the_later_protocol_is_spoken(
        self, apiserver: ApiServer, executor: PodExecutor
    ) -> None:
        apiserver.protocols = ("v5.channel.k8s.io",)

        assert run(executor, "echo fine") == Output("fine\n", 0)

    def test_that_prints_without_end_does_not_fill_the_memory(self, executor: PodExecutor) -> None:
        found = run(executor, "head -c 1000000 /dev/zero")

        assert len(found.stdout) < 100_000

    def test_that_does_not_end_is_given_up(self, executor: PodExecutor) -> None:
        # On a busy machine the exec alone takes half a second.
        with pytest.raises(Away, match="no answer within 5 s"):
            run(executor, "sleep 60", within=5)

    @pytest.mark.parametrize(
        ("fault", "problem"),
        [
            (Status(403, "Forbidden", "no"), "may not exec into pod"),
            (Status(404, "NotFound", 'pods "w-0" not found'), "not found"),
            (Status(500, "", "error dialing backend"), "error dialing backend"),
            (Hangup(), "without an answer"),
        ],
        ids=["403", "404", "the node does not answer", "hangs up"],
    )
    def test_that_can_not_be_run_is_no_answer(
        self, apiserver: ApiServer, executor: PodExecutor, fault: Status | Hangup, problem: str
    ) -> None:
        apiserver.on("exec", fault)

        with pytest.raises(Away, match=problem):
            run(executor, "echo fine")

    def test_with_a_server_that_says_nothing_ends_at_the_deadline(
        self, apiserver: ApiServer, executor: PodExecutor
    ) -> None:
        apiserver.on("exec", Silence())
        begun = time.monotonic()

        with pytest.raises(Away):
            run(executor, "echo fine", within=0.5)

        assert time.monotonic() - begun < 10

    def test_an_exec_whose_connection_breaks_before_its_end_is_reported_is_no_answer(
        self, apiserver: ApiServer, executor: PodExecutor
    ) -> None:
        def breaks(channel: Channel) -> None:
            channel.stdout(b"mpirt-sessions 0 1\n")
            channel.close()

        apiserver.on("exec", Peer(breaks))

        with pytest.raises(Away, match="before the program's end was reported"):
            run(executor, "echo fine")

    def test_that_the_runtime_can_not_start_is_no_answer(
        self, apiserver: ApiServer, executor: PodExecutor
    ) -> None:
        apiserver.on("exec", Peer(lambda channel: channel.status(internal_error("no such container"))))

        with pytest.raises(Away, match="no such container"):
            run(executor, "echo fine")

    def test_is_waited_for_through_pings(self, apiserver: ApiServer, executor: PodExecutor) -> None:
        def pings(channel: Channel) -> None:
            channel.raw(b"\x89\x02hi")
            channel.stdout(b"fine\n")
            channel.status(SUCCESS)

        apiserver.on("exec", Peer(pings))

        assert run(executor, "echo fine") == Output("fine\n", 0)


@contextmanager
def asking(executor: PodExecutor) -> Iterator[tuple[Questions, queue.Queue[JobKey]]]:
    """Questions, and the jobs for which there was an answer."""
    answered: queue.Queue[JobKey] = queue.Queue()
    questions = Questions(executor, clock=lambda: datetime.now(UTC), answered=answered.put)
    try:
        yield questions, answered
    finally:
        questions.close()


def says(apiserver: ApiServer, line: bytes, code: int = 0) -> None:
    def talk(channel: Channel) -> None:
        channel.stdout(line)
        channel.status(exit_status(code))

    apiserver.on("exec", Peer(talk))


def answer(apiserver: ApiServer, executor: PodExecutor, line: bytes, code: int = 0) -> Answer:
    """What is made of what the pod prints."""
    says(apiserver, line, code)
    with asking(executor) as (questions, answered):
        questions.ask(KEY, [ASKED])
        assert answered.get(timeout=20) == KEY
        return questions.answers(KEY)["uid-of-w-0"]


class TestAnAnswer:
    def test_is_the_number_of_commands(self, apiserver: ApiServer, executor: PodExecutor) -> None:
        assert answer(apiserver, executor, b"mpirt-sessions 2 4711\n").sessions == 2

    @pytest.mark.parametrize(
        ("line", "code", "problem"),
        [
            (b"mpirt-sessions unknown\n", 1, "its keeper ended with 1"),
            (b"mpirt-sessions 0 1\n", 2, "its keeper ended with 2"),
            (b"mpirt-sessions 0", 0, "its keeper ended with 0, and printed 'mpirt-sessions 0'"),
            (b"", 0, "its keeper ended with 0"),
            (b"", 127, "no keeper in /etc/mpi of the pod fits its machine"),
        ],
    )
    def test_that_is_not_whole_proves_nothing(
        self, apiserver: ApiServer, executor: PodExecutor, line: bytes, code: int, problem: str
    ) -> None:
        found = answer(apiserver, executor, line, code)

        assert (found.sessions, found.idle_since) == (None, None)
        assert problem in found.problem

    def test_is_asked_of_the_keeper_in_the_container(self, apiserver: ApiServer, executor: PodExecutor) -> None:
        answer(apiserver, executor, b"mpirt-sessions 0 1\n")

        (request,) = apiserver.asked("exec")
        assert "container=worker" in request.target
        assert request.headers["sec-websocket-protocol"] == V4
        assert COMMAND[2].endswith('"$k" sessions; done; exit 127')
