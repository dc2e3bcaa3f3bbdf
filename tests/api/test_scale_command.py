"""`mpirt scale`, run as a person runs it, beside a controller: its words, its exit code, and what has changed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.kube.wait import by_the_clock
from testbed.mpijobs import submit as submit_mpi_job
from testbed.plane.stages import ENDS, NEVER
from tests.api.apiproxy import Where
from tests.api.beds import Bed
from tests.api.controllers import job_name
from tests.api.scale_changes import words
from tests.promises import promise
from tests.support import trainings
from tests.support.trainings import Training

MPIRT = Path(sys.executable).with_name("mpirt")
WITHIN = trainings.WITHIN


def started(bed: Bed, *words: str) -> subprocess.Popen[str]:
    """Start the command for the bed's namespace, as an administrator."""
    kubectl = bed.namespace.ground.kubectl
    argv = [str(MPIRT), "scale", *words, f"--namespace={bed.namespace.name}"]
    environment = {"KUBECONFIG": str(kubectl.kubeconfig), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )


def ended(command: subprocess.Popen[str]) -> tuple[int, list[str], str]:
    """Its code, the lines of its output, and what it says is wrong."""
    out, err = command.communicate(timeout=by_the_clock(WITHIN))
    return command.returncode, out.splitlines(), err


def running(bed: Bed, *, workers: int = 2, **fields: object) -> Training:
    job = trainings.submit(bed.namespace, job_name("person"), replicas=workers, **fields)
    job.wait_for("Running")
    return job


@promise("mpirt scale adds and removes workers, and shows what becomes of each.", of="mpirt")
def test_more_workers_join(bed: Bed) -> None:
    job = running(bed)
    # It looks once a second: without this it may see the end together with the workers, or before they are hosts.
    success = "PATCH scaleouts/status ScaleSucceeded"
    hold = bed.proxy.hold(Where.BEFORE, lambda write: job.name in write.name and words(write) == success)
    command = started(bed, job.name, "+2")
    assert command.stdout is not None
    awaited, lines = {f"{job.worker(2)}: is Ready", f"{job.worker(3)}: is Ready"}, []
    for line in command.stdout:
        lines.append(line.rstrip())
        awaited.discard(lines[-1])
        if not awaited:
            break
    hold.release()

    code, rest, _ = ended(command)

    assert (code, awaited) == (0, set())
    assert lines[0].startswith(f"scaleout {job.name}-scaleout-")
    assert not any("is no host any more" in line for line in (*lines, *rest))
    assert rest[-1] == f"done: added {job.worker(2)}, {job.worker(3)}"
    assert job.replicas() == 4


@promise("mpirt scale adds and removes workers, and shows what becomes of each.", of="mpirt")
def test_the_worker_that_is_named_leaves_when_nothing_runs_in_it(bed: Bed) -> None:
    job = running(bed, workers=3)
    bed.proxy.busy[job.worker(1)] = 1
    command = started(bed, f"trainingjob/{job.name}", "--remove", job.worker(1))
    job.wait(lambda: f"{job.worker(1)}:1" not in job.hosts(), "one host less")
    assert command.poll() is None

    del bed.proxy.busy[job.worker(1)]

    code, lines, _ = ended(command)
    assert code == 0
    assert f"{job.worker(1)}: is no host any more; waits until no command runs in it" in lines
    assert lines[-1] == f"done: removed {job.worker(1)}"
    assert job.workers() == [job.worker(0), job.worker(2)]


@promise("mpirt scale ends with 253 and says why if the change fails or is not done in time.", of="mpirt")
def test_fewer_workers_than_the_job_needs_are_refused_and_none_leaves(bed: Bed) -> None:
    job = running(bed, least=2)

    code, _, said = ended(started(bed, job.name, "-1"))

    assert code == 253
    assert said.startswith("mpirt: ")
    assert "minReplicas" in said
    assert job.workers() == [job.worker(0), job.worker(1)]


@promise("mpirt scale ends with 253 and says why if the change fails or is not done in time.", of="mpirt")
def test_a_worker_that_stays_in_use_fails_the_change_at_its_time_limit(bed: Bed) -> None:
    job = running(bed)
    bed.proxy.busy[job.worker(1)] = 1

    code, _, said = ended(started(bed, job.name, "-1", "--timeout", "5"))

    assert code == 253
    assert "is in use by 1 command" in said
    assert job.workers() == [job.worker(0), job.worker(1)]


@promise("mpirt scale JOB NUMBER does the same as kubectl scale.", of="mpirt")
def test_a_number_is_what_kubectl_scale_sets(bed: Bed) -> None:
    job = running(bed)

    code, lines, _ = ended(started(bed, job.name, "3"))

    assert code == 0
    assert lines[0] == f"trainingjob {job.name}: from 2 to 3 workers"
    assert lines[-1] == "done: 3 of 3 workers are Ready"
    assert job.replicas() == 3


@promise("mpirt scale adds and removes workers, and shows what becomes of each.", of="mpirt")
def test_an_mpi_job_has_one_worker_more(bed: Bed) -> None:
    job = submit_mpi_job(
        bed.namespace,
        job_name("person"),
        "busybox",
        ("true",),
        workers=2,
        annotations={"Launcher": {ENDS: NEVER}},
        worker={"topologySpreadConstraints": []},
        elastic={"minReplicas": 1, "maxReplicas": 4},
    )
    job.wait_for("Running")

    code, lines, _ = ended(started(bed, f"mpijob/{job.name}", "+1"))

    assert code == 0
    assert lines[0] == f"mpijob {job.name}: from 2 to 3 workers"
    assert f"{job.name}-worker-2: is Ready" in lines
    code, _, said = ended(started(bed, job.name, "--remove", f"{job.name}-worker-0"))
    assert code == 240
    assert f"remove the highest one instead: mpirt scale {job.name} -1" in said


@promise("mpirt scale names a job or a worker that does not exist, and ends with 243.", of="mpirt")
@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("no-such-job", "+1"), 243, "there is no trainingjob or mpijob no-such-job in namespace"),
        (("pod/x", "+1"), 240, "expected NAME, trainingjob/NAME or mpijob/NAME, got 'pod/x'"),
    ],
)
def test_a_job_that_is_not_there_is_named(bed: Bed, words: tuple[str, ...], code: int, problem: str) -> None:
    ended_with, _, said = ended(started(bed, *words))

    assert (ended_with, problem in said) == (code, True), said


@promise("mpirt scale names a job or a worker that does not exist, and ends with 243.", of="mpirt")
def test_a_pod_that_is_no_worker_of_the_job_is_refused_before_anything_is_asked_for(bed: Bed) -> None:
    job = running(bed)

    code, lines, said = ended(started(bed, job.name, "--remove", "somebody-else"))

    assert (code, lines) == (243, [])
    assert f"its workers are {job.worker(0)}, {job.worker(1)}" in said


def test_a_job_that_no_controller_knows_has_no_workers_whatever_else_is_there(bed: Bed) -> None:
    other = running(bed)
    job = trainings.submit(
        bed.namespace, job_name("person"), replicas=2, on_job={"mpirt.dev/managed-by": "example.com/somebody"}
    )

    code, lines, said = ended(started(bed, job.name, "--remove", other.worker(0)))

    assert (code, lines) == (243, [])
    assert "its workers are none" in said


@promise("mpirt scale, if interrupted, says how to undo the change, which goes on.", of="mpirt")
@promise("Deleting a ScaleIn undoes it while its workers are not yet deleted.", of="TrainingJob")
def test_an_interrupted_command_says_how_to_undo_the_change_which_goes_on(bed: Bed) -> None:
    job = running(bed)
    bed.proxy.busy[job.worker(1)] = 1
    command = started(bed, job.name, "-1")
    job.wait(lambda: len(job.hosts()) == 1, "one host less")

    command.send_signal(signal.SIGINT)

    code, lines, said = ended(command)
    name = lines[0].split()[1]
    assert code == 130
    assert f"undo it by: kubectl delete scalein {name} -n {bed.namespace.name}" in said
    bed.namespace.kubectl("delete", "scalein", name)
    job.wait(lambda: len(job.hosts()) == 2, "both hosts again")


def test_the_command_without_waiting_ends_at_once_and_the_change_goes_on(bed: Bed) -> None:
    job = running(bed)

    code, lines, _ = ended(started(bed, job.name, "+1", "--no-wait"))

    assert (code, len(lines)) == (0, 1)
    job.wait(lambda: len(job.workers()) == 3, "three workers")


@pytest.mark.one_in(3)
def test_two_at_once_are_done_one_after_the_other(bed: Bed) -> None:
    job = running(bed)

    first, second = started(bed, job.name, "+1"), started(bed, job.name, "+1")

    assert [ended(first)[0], ended(second)[0]] == [0, 0]
    assert job.replicas() == 4
