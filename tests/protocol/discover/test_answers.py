"""What is printed, and what is said instead."""

from __future__ import annotations

import json

import pytest

from tests.apiserver.pods import pod
from tests.protocol.discover.program import DISCOVER, JOB, Ended, Program, worker
from tests.protocol.discover.scenes import Scene

HOSTS = "w-0:1\nw-2:4\nw-10:1\n"
# Until these seconds are over, a scene that ends with them needs an answer, on a busy machine too.
ROOMY = "10"


def none_ready(program: Program) -> Ended:
    program.server.world.put(worker(0, ready=False), worker(2, draining="true"), worker(10, ready=False))
    return program.job("--timeout", ROOMY)


def misspelled(program: Program) -> Ended:
    return program.run("--job", "trian", "--timeout", ROOMY)


def two_of_four(program: Program) -> Ended:
    program.server.world.put(worker(2, ready=False))
    return program.job("--wait", "4", "--timeout", ROOMY)


class TestTheList:
    @pytest.mark.parametrize(
        ("form", "text"),
        [
            ("horovod", HOSTS),
            ("hostfile", "w-0 slots=1\nw-2 slots=4\nw-10 slots=1\n"),
            (
                "json",
                '[{"name": "w-0", "slots": 1}, {"name": "w-2", "slots": 4}, {"name": "w-10", "slots": 1}]\n',
            ),
        ],
    )
    def test_is_in_the_form_that_was_asked_for(self, program: Program, form: str, text: str) -> None:
        ended = program.job("--format", form)

        assert (ended.code, ended.output, ended.errors) == (0, text, "")

    def test_is_of_the_job_whoever_labels_it(self, program: Program) -> None:
        program.server.world.put(
            pod(
                "a-worker-0",
                labels={"training.kubeflow.org/job-name": "a", "training.kubeflow.org/job-role": "worker"},
            ),
            pod(
                "a-launcher",
                labels={"training.kubeflow.org/job-name": "a", "training.kubeflow.org/job-role": "launcher"},
            ),
            pod("b-worker-0", labels={"mpi-job-name": "b", "mpi-job-role": "worker"}),
        )

        assert program.run("--job", "train").output == HOSTS
        assert program.run("--job", "a").output == "a-worker-0:1\n"
        assert program.run(env={"MPIRT_JOB": "b"}).output == "b-worker-0:1\n"

    def test_asks_the_server_for_no_other_pods(self, program: Program) -> None:
        program.job()

        [asked] = program.server.asked("list")
        assert asked.query["labelSelector"] == "mpirt.dev/job=train"
        assert "resourceVersion" not in asked.query

    def test_may_be_empty(self, program: Program) -> None:
        program.server.world.put(worker(0, ready=False), worker(2, draining="true"), worker(10, ready=False))

        ended = program.job(env={"MPIRT_DISCOVER_FIRST_TIMEOUT": "0"})

        assert (ended.code, ended.output, ended.errors) == (0, "", "")

    @pytest.mark.parametrize("ended", [Scene(none_ready)], indirect=True, ids=str)
    def test_that_stays_empty_is_explained_by_a_call_that_waited(self, ended: Ended) -> None:
        assert (ended.code, ended.output) == (0, ""), ended
        assert ended.last == (
            "no hosts: 0 of 1 workers are Ready; w-0: Pending, w-2: draining (mpirt.dev/draining), w-10: Pending"
        )

    def test_of_five_thousand_is_whole(self, program: Program) -> None:
        program.server.world.put(*(worker(number) for number in range(5000)))

        ended = program.job("--timeout", "40")

        assert ended.code == 0
        assert ended.output.splitlines() == [f"w-{number}:1" for number in range(5000)]

    def test_is_explained_when_that_is_asked_for(self, program: Program) -> None:
        program.server.world.put(worker(2, draining="since noon"))

        ended = program.job(env={"MPIRT_LOG": "debug"})

        assert (ended.output, ended.line) == ("w-0:1\nw-10:1\n", "left out: w-2: draining (mpirt.dev/draining)")

    def test_that_nobody_can_take_is_an_error(self, program: Program) -> None:
        ended = program.start(["sh", "-c", f"exec {DISCOVER} --job train > /dev/full"])

        assert (ended.code, ended.line) == (255, "the list can't be written to stdout: No space left on device")


class TestInputThatIsWrong:
    def test_no_job_is_named(self, program: Program) -> None:
        ended = program.run()

        assert (ended.code, ended.output) == (240, "")
        assert ended.line.startswith("no job: not in a launcher pod")

    @pytest.mark.parametrize("ended", [Scene(misspelled)], indirect=True, ids=str)
    def test_no_such_job(self, ended: Ended) -> None:
        assert (ended.code, ended.output) == (243, ""), ended
        assert ended.last == "--job trian: no pod in namespace ml belongs to it; is the name right?"

    def test_slots_that_can_not_be(self, program: Program) -> None:
        program.server.world.put(worker(2, slots="x"))

        ended = program.job()

        assert (ended.code, ended.output) == (241, "")
        assert ended.line.startswith("pod w-2: annotation mpirt.dev/slots: must be ")

    def test_a_word_that_is_no_option(self, program: Program) -> None:
        ended = program.run("train")

        assert (ended.code, ended.line) == (240, "'train' is not an option of mpirt-discover; see --help")
        assert program.server.connections == 0


class TestALauncherPod:
    """Where the host name leads to a pod, or a file to its labels."""

    def test_has_its_labels_in_a_file(self, program: Program) -> None:
        file = program.folder / "labels"
        file.write_text('app="x"\nmpirt.dev/job="train"\nmpirt.dev/role="launcher"')

        assert program.run(env={"MPIRT_POD_LABELS": str(file)}).output == HOSTS

    def test_is_read_where_there_is_none(self, program: Program) -> None:
        here = program.start(["uname", "-n"]).output.strip()
        program.server.world.put(pod(here, labels={**JOB, "mpirt.dev/role": "launcher"}))

        ended = program.run(env={"KUBERNETES_SERVICE_HOST": "in a cluster"})

        assert (ended.output, ended.errors) == (HOSTS, "")

    def test_that_names_no_job_says_where_it_looked(self, program: Program) -> None:
        here = program.start(["uname", "-n"]).output.strip()
        program.server.world.put(pod(here, labels={"app": "x"}))

        ended = program.run(env={"KUBERNETES_SERVICE_HOST": "in a cluster"})

        assert ended.code == 240
        assert ended.line.startswith(f"no job: pod {here} has none of the labels mpirt.dev/job, ")


class TestWaiting:
    def test_ends_with_the_hosts(self, program: Program) -> None:
        ended = program.job("--wait", "3", "--timeout", "30", "--format", "json")

        assert [host["name"] for host in json.loads(ended.output)] == ["w-0", "w-2", "w-10"]

    @pytest.mark.parametrize("ended", [Scene(two_of_four)], indirect=True, ids=str)
    def test_in_vain_names_who_is_missing_and_has_a_code_of_its_own(self, ended: Ended) -> None:
        missing = "2 of 4 workers are Ready; w-2: Pending, 1 not created yet"

        assert (ended.code, ended.output) == (253, ""), ended
        assert ended.errors.splitlines() == [
            f"mpirt-discover: waiting: {missing}",
            f"mpirt-discover: {missing}; gave up after {ROOMY} s",
        ]
