"""Around a call: its horovodrun, the mark of that one's first call, and the job of the launcher pod."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpirt.discover.drivers import Mark, find_driver, folders
from mpirt.discover.job import job_at_hand, own_pod, parse_labels
from mpirt.discover.options import Selection
from mpirt.errors import UsageError
from mpirt.processes import Process

DRIVER = Process(7, 1, started=1234)
LOOK = "import os; from mpirt.discover.drivers import find_driver; print(find_driver(os.getppid()))"


class TestHorovodrun:
    @pytest.mark.parametrize("name", ["horovodrun", "mpirun"])
    def test_is_known_by_its_name_through_shells(self, tmp_path: Path, name: str) -> None:
        script = tmp_path / name
        script.write_text(
            f"import subprocess\nprint(__import__('os').getpid())\n"
            f"subprocess.run(['sh', '-c', 'sh -c \"$@\"; true', 'sh', '{sys.executable} -c \"{LOOK}\"'])\n"
        )

        told = subprocess.run(
            [sys.executable, "-u", str(script)], capture_output=True, text=True, check=True, timeout=60
        ).stdout.splitlines()

        assert told[1].startswith(f"Process(pid={told[0]}, ") is (name == "horovodrun"), told

    def test_is_known_as_a_module(self, tmp_path: Path) -> None:
        _process(tmp_path, 60, above=50, words=["sh", "-c", "horovodrun -np 2"])
        _process(tmp_path, 50, above=1, words=["python3", "-m", "horovod.runner.launch", "-np", "2"], started=99)

        found = find_driver(60, str(tmp_path))

        assert found is not None
        assert (found.pid, found.started) == (50, 99)
        assert found.age > 0

    def test_may_not_be_there(self, tmp_path: Path) -> None:
        assert find_driver(60, str(tmp_path)) is None

    def test_is_not_looked_for_in_a_circle(self, tmp_path: Path) -> None:
        _process(tmp_path, 60, above=60, words=["sh"])

        assert find_driver(60, str(tmp_path)) is None


class TestTheMark:
    def test_is_there_once_it_was_made(self, tmp_path: Path) -> None:
        mark = Mark(DRIVER, [str(tmp_path)])

        assert (mark.is_there(), mark.can_be_made()) == (False, True)

        mark.make()

        assert mark.is_there()
        assert Mark(DRIVER, [str(tmp_path)]).is_there()

    def test_is_of_one_process(self, tmp_path: Path) -> None:
        Mark(DRIVER, [str(tmp_path)]).make()

        assert not Mark(Process(7, 1, started=1235), [str(tmp_path)]).is_there()

    def test_stands_in_a_folder_that_nobody_else_enters(self, tmp_path: Path) -> None:
        Mark(DRIVER, [str(tmp_path)]).make()

        [folder] = tmp_path.iterdir()
        assert (folder.name, folder.stat().st_mode & 0o777) == (f"mpirt-discover-{os.getuid()}", 0o700)

    def test_goes_where_it_can(self, tmp_path: Path) -> None:
        mark = Mark(DRIVER, [str(tmp_path / "missing"), str(tmp_path)])
        mark.make()

        assert mark.is_there()

    def test_is_not_made_where_there_is_no_place(self, tmp_path: Path) -> None:
        mark = Mark(DRIVER, [str(tmp_path / "missing")])
        mark.make()

        assert (mark.is_there(), mark.can_be_made()) == (False, False)

    @pytest.mark.parametrize("mode", [0o777, 0o750])
    def test_is_not_believed_in_a_folder_that_others_enter(self, tmp_path: Path, mode: int) -> None:
        folder = tmp_path / f"mpirt-discover-{os.getuid()}"
        folder.mkdir()
        folder.chmod(mode)
        (folder / "7-1234").touch()
        mark = Mark(DRIVER, [str(tmp_path)])

        assert (mark.is_there(), mark.can_be_made()) == (False, False)

    def test_is_not_left_behind_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        (tmp_path / f"mpirt-discover-{os.getuid()}").symlink_to(tmp_path / "elsewhere")

        assert not Mark(DRIVER, [str(tmp_path)]).can_be_made()


def test_folders_are_absolute() -> None:
    assert folders({"TMPDIR": "/scratch", "XDG_RUNTIME_DIR": "here"}) == ["/scratch", "/tmp", "/dev/shm"]


def _process(proc: Path, pid: int, *, above: int, words: list[str], started: int = 0) -> None:
    """A process as /proc shows it."""
    folder = proc / str(pid)
    folder.mkdir()
    fields = ["S", str(above), *["0"] * 17, str(started), "0"]
    (folder / "stat").write_text(f"{pid} (a ) b) {' '.join(fields)}\n")
    (folder / "cmdline").write_bytes(b"\0".join(word.encode() for word in words) + b"\0")


def test_labels_are_read_as_the_downward_api_writes_them() -> None:
    text = 'app="x"\nmpirt.dev/job="train"\nempty=""\n\nnonsense\n'

    assert parse_labels(text) == {"app": "x", "mpirt.dev/job": "train", "empty": ""}


class TestTheJob:
    def test_stands_in_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "labels").write_text('mpirt.dev/job="train"\n')
        path = str(tmp_path / "labels")

        found = job_at_hand({"MPIRT_POD_LABELS": path}, "")

        assert found == Selection(f"{path}: mpirt.dev/job train", ("mpirt.dev/job=train",))

    def test_stands_in_the_host_name_that_mpi_operator_gives(self) -> None:
        found = job_at_hand({"K_MPI_JOB_ROLE": "launcher"}, "train-launcher")

        assert found is not None
        assert found.selectors == ("training.kubeflow.org/job-name=train",)

    @pytest.mark.parametrize(
        ("environ", "host"),
        [
            ({}, "train-launcher"),
            ({"K_MPI_JOB_ROLE": "worker"}, "a-launcher"),
            ({"K_MPI_JOB_ROLE": "launcher"}, "a"),
        ],
    )
    def test_may_stand_in_the_pod_only(self, environ: dict[str, str], host: str) -> None:
        assert job_at_hand({**environ, "MPIRT_POD_LABELS": "/nowhere"}, host) is None

    def test_is_not_known_outside_of_a_pod(self) -> None:
        with pytest.raises(UsageError, match=r"no job: not in a launcher pod .*; name it with --job"):
            job_at_hand({"MPIRT_POD_LABELS": "/nowhere"}, "")


def test_there_is_no_own_pod_outside_of_a_cluster() -> None:
    assert own_pod({}) == ""
    assert own_pod({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}) != ""
