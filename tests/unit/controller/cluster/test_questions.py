"""One tenant's pods that don't answer delay no questions to another tenant's pods."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from datetime import datetime

import pytest

from mpirt.controller.cluster.link import Away
from mpirt.controller.cluster.questions import Output, PodExecutor, Questions
from mpirt.controller.model.actions import Question
from mpirt.controller.model.spec import JobKey
from tests.unit.controller.jobs import NOON

BAD = JobKey("TrainingJob", "ml", "bad")
GOOD = JobKey("TrainingJob", "vision", "good")


class Pods(PodExecutor):
    """Pods that can be asked: those of namespace ml don't answer until the deadline has come."""

    def __init__(self) -> None:
        self.begun: queue.Queue[str] = queue.Queue()
        self.deadline = threading.Event()
        self.fault: Exception | None = None

    def run(self, namespace: str, pod: str, container: str, command: tuple[str, ...], *, within: float) -> Output:
        del container, command
        self.begun.put(pod)
        if self.fault is not None:
            raise self.fault
        if namespace == BAD.namespace:
            self.deadline.wait()
            raise Away(f"no answer within {within:g} s")
        return Output("mpirt-sessions 0 1\n", 0)


class Ground:
    """The questions, the pods, and a clock."""

    def __init__(self) -> None:
        self.now: datetime = NOON
        self.pods = Pods()
        self.answered: queue.Queue[JobKey] = queue.Queue()
        self.questions = Questions(self.pods, clock=lambda: self.now, answered=self.answered.put)

    def begun(self, count: int) -> list[str]:
        """The pods that were asked next."""
        return [self.pods.begun.get(timeout=20) for _ in range(count)]


@pytest.fixture
def ground() -> Iterator[Ground]:
    made = Ground()
    yield made
    made.pods.deadline.set()
    made.questions.close()


def of(job: JobKey, count: int) -> list[Question]:
    """The pods of a job."""
    return [Question(f"{job.name}-{n}", f"uid-of-{job.name}-{n}", "worker") for n in range(count)]


class TestPodsThatDoNotAnswer:
    def test_delay_nobody_else(self, ground: Ground) -> None:
        ground.questions.ask(BAD, of(BAD, 40))
        ground.begun(8)

        ground.questions.ask(GOOD, of(GOOD, 1))

        assert ground.answered.get(timeout=20) == GOOD
        assert ground.questions.answers(GOOD)["uid-of-good-0"].sessions == 0


class TestAQuestion:
    def test_that_fails_by_an_internal_error_is_reported_and_frees_its_place(self, ground: Ground) -> None:
        ground.pods.fault = ValueError("odd")
        ground.questions.ask(GOOD, of(GOOD, 100))

        for _ in range(100):
            assert ground.answered.get(timeout=20) == GOOD

        problems = {answer.problem for answer in ground.questions.answers(GOOD).values()}
        assert problems == {"internal error; please report it: ValueError: odd"}

    def test_is_put_no_more_after_the_end(self, ground: Ground) -> None:
        ground.questions.ask(BAD, of(BAD, 9))
        ground.begun(8)

        ground.questions.close()
        ground.pods.deadline.set()
        for _ in range(8):
            assert ground.answered.get(timeout=20) == BAD

        assert ground.pods.begun.empty()

    def test_holds_up_no_exit_of_the_process(self, ground: Ground) -> None:
        ground.questions.ask(BAD, of(BAD, 1))
        ground.begun(1)

        assert {one.daemon for one in threading.enumerate() if one.name == "ask bad-0"} == {True}
