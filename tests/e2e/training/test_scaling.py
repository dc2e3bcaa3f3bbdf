"""A TrainingJob is scaled out and in while it trains: no committed step is repeated or skipped."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from testbed.kube.wait import Stopwatch, until
from tests.e2e.controller.deployed import Deployed, job_name
from tests.e2e.elastic.steps import broken_promises, worlds
from tests.e2e.elastic.training import Training
from tests.e2e.training import jobs
from tests.e2e.training.jobs import Job
from tests.e2e.training.lastwords import LastWords, following
from tests.promises import promise

WITHIN = 120.0
FILES = ("/etc/edl/hostfile", "/etc/mpi/hostfile", "/job/hostfile")

pytestmark = pytest.mark.oldest


@dataclass(frozen=True)
class Scaled:
    """A job that was scaled out by two, in by count, and in by name, and has ended."""

    job: Job
    run: Training
    outcomes: list[tuple[str, str]]
    workers: list[list[str]]
    """The workers after each of these."""
    last_words: dict[str, LastWords]
    """The last output of the workers that left."""
    code: int
    listed_after: dict[str, float]
    """How many seconds after the ScaleOut's end the files of the launcher listed all four workers."""


@pytest.fixture(scope="module")
def scaled(controller: Deployed) -> Iterator[Scaled]:
    job = jobs.submit(controller.namespace, job_name("elastic"), speaks_last=True)
    outcomes, workers = [], []
    with jobs.trains(job, size=2) as run:
        outcomes.append(job.scale_out("two-more", 2, timeout=300).outcome(within=WITHIN))
        listed_after = {path: seconds_until_listed(job, path, 4) for path in FILES}
        run.settled(run.world(4, since=0.0, within=WITHIN))
        workers.append(job.workers())
        leaving = [job.worker(3), job.worker(1)]
        with following(controller.namespace, leaving) as last_words:
            outcomes.append(job.scale_in("one-less", toDelete={"count": 1}, timeout=60).outcome(within=WITHIN))
            run.settled(run.world(3, since=0.0, within=WITHIN))
            workers.append(job.workers())
            asked = time.time()
            middle = job.scale_in("the-middle", toDelete={"podNames": [job.worker(1)]}, timeout=60)
            outcomes.append(middle.outcome(within=WITHIN))
            run.settled(run.world(2, since=asked, within=WITHIN))
            workers.append(job.workers())
        run.finish(job.worker(0))
        code = run.exit_code(within=60)
    print(run.tail())
    print(f"listed after {listed_after}")
    yield Scaled(job, run, outcomes, workers, last_words, code, listed_after)


def seconds_until_listed(job: Job, path: str, count: int) -> float:
    watch = Stopwatch()
    until(lambda: len(job.listed(path)) == count, within=WITHIN, what=f"{count} hosts in {path}")
    return watch.seconds()


@promise(
    "ScaleOut and ScaleIn add and remove workers while the job trains, by count or by name.", of="TrainingJob"
)
def test_the_workers_that_were_asked_for_have_joined_and_left(scaled: Scaled) -> None:
    name = scaled.job.worker

    assert scaled.outcomes == [
        ("ScaleSucceeded", f"added {name(2)}, {name(3)}"),
        ("ScaleSucceeded", f"removed {name(3)}"),
        ("ScaleSucceeded", f"removed {name(1)}"),
    ]
    assert scaled.workers == [
        [name(0), name(1), name(2), name(3)],
        [name(0), name(1), name(2)],
        [name(0), name(2)],
    ]


@promise("The files in the launcher that list its hosts follow within seconds.", of="TrainingJob")
def test_the_files_of_the_launcher_follow_in_seconds_and_not_in_a_minute(scaled: Scaled) -> None:
    assert max(scaled.listed_after.values()) < 20


@promise("No committed step is repeated or skipped when workers join and leave.", of="TrainingJob")
def test_no_committed_step_is_repeated_or_skipped(scaled: Scaled) -> None:
    assert scaled.code == 0
    # One of the two new workers may be there first.
    assert worlds(scaled.run.steps()) in ([2, 4, 3, 2], [2, 3, 4, 3, 2])
    assert broken_promises(scaled.run.lines()) == []


@promise("A worker is deleted only when no command runs in it.", of="TrainingJob")
def test_no_process_of_a_rank_is_alive_in_a_worker_that_is_told_to_end(scaled: Scaled) -> None:
    for worker, words in scaled.last_words.items():
        assert words.processes, worker
        assert [line for line in words.processes if "train.py" in line] == [], worker


@promise("There is one number of workers: scalers change it in the spec, as kubectl scale does.", of="TrainingJob")
def test_the_spec_says_how_many_workers_there_are(scaled: Scaled) -> None:
    assert scaled.job.body()["spec"]["etReplicaSpecs"]["worker"]["replicas"] == 2


def test_the_job_has_succeeded_and_its_workers_go(scaled: Scaled) -> None:
    job = scaled.job

    job.wait(lambda: job.phase() == "Succeeded", "to succeed", within=WITHIN)
    job.wait(lambda: not job.pods(), "its workers to go", within=WITHIN)
