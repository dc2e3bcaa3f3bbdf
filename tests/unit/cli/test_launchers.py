"""What launchers are given: a list of hosts by `mpirt hosts`, the variables by `mpirt env`."""

from __future__ import annotations

import os
import pty
import re
from contextlib import suppress
from pathlib import Path

import pytest

from mpirt.cli.main import main
from tests.promises import promise
from tests.unit.cli.program import MPIRT, mpirt

LIST = "# rack 1\ntrain-worker-0 slots=4\n\ntrain-worker-1:2\n"


@pytest.fixture
def hostfile(tmp_path: Path) -> Path:
    file = tmp_path / "hostfile"
    file.write_text(LIST, encoding="utf-8")
    return file


class TestForms:
    def test_horovods_form_is_the_one_nobody_has_to_ask_for(self, hostfile: Path) -> None:
        done = mpirt("hosts", hostfile)

        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == "train-worker-0:4\ntrain-worker-1:2\n"

    @promise(
        "mpirt hosts converts a list of hosts into each form.", of="mpirt", no_cluster="it only reads and prints"
    )
    @pytest.mark.parametrize(
        ("form", "text"),
        [
            ("horovod", "train-worker-0:4\ntrain-worker-1:2\n"),
            ("hostfile", "train-worker-0 slots=4\ntrain-worker-1 slots=2\n"),
            ("hydra", "train-worker-0:4\ntrain-worker-1:2\n"),
            ("json", '[{"name": "train-worker-0", "slots": 4}, {"name": "train-worker-1", "slots": 2}]\n'),
        ],
    )
    def test_every_form(self, form: str, text: str, hostfile: Path, capsys: pytest.CaptureFixture[str]) -> None:
        code = main(["hosts", "--format", form, str(hostfile)])

        assert (code, capsys.readouterr().out) == (0, text)

    def test_an_unknown_form_is_answered_with_the_known_ones(
        self, hostfile: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code = main(["hosts", "--format", "slurm", str(hostfile)])

        assert code == 240
        assert "'horovod', 'hostfile', 'hydra', 'json'" in capsys.readouterr().err


class TestSources:
    def test_a_list_comes_through_a_pipe(self) -> None:
        done = mpirt("hosts", "-", stdin=LIST)

        assert done.stdout == "train-worker-0:4\ntrain-worker-1:2\n"

    def test_a_list_is_typed_at_a_terminal(self) -> None:
        keyboard, terminal = pty.openpty()
        pid = os.posix_spawn(
            MPIRT,
            [str(MPIRT), "hosts", "-"],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, terminal, fd) for fd in (0, 1, 2)],
        )
        os.write(keyboard, b"train-worker-0 slots=4\n\x04")
        status = os.waitpid(pid, 0)[1]
        os.close(terminal)
        shown = b""
        # What was typed comes by itself, and an error behind all that was shown.
        with suppress(OSError):
            while True:
                shown += os.read(keyboard, 1000)

        assert os.waitstatus_to_exitcode(status) == 0
        assert shown.replace(b"\r\n", b"\n").endswith(b"\ntrain-worker-0:4\n")

    def test_a_list_from_another_system_is_read_too(self, tmp_path: Path) -> None:
        file = tmp_path / "hosts.txt"
        file.write_bytes(b"\xef\xbb\xbftrain-worker-0 slots=4\r\n\r\ntrain-worker-1 slots=2\r\n")

        assert mpirt("hosts", file).stdout == "train-worker-0:4\ntrain-worker-1:2\n"

    def test_nobody_listed_is_nothing_printed_and_no_error(self) -> None:
        done = mpirt("hosts", "-", stdin="# nobody yet\n")

        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


class TestFaults:
    @pytest.mark.parametrize(
        ("data", "said"),
        [
            pytest.param(
                b"w-0 slots=4\nw-1 slots=two\n",
                "line 2: slots: must be a whole number of at most nine digits, got 'two'",
                id="a line",
            ),
            pytest.param(b"w-0\n\xff\xfe\x00", "is not a text file: byte 4 is not UTF-8", id="no text"),
        ],
    )
    def test_of_a_list_are_named_and_nothing_is_printed(self, tmp_path: Path, data: bytes, said: str) -> None:
        file = tmp_path / "hostfile"
        file.write_bytes(data)

        done = mpirt("hosts", file)

        assert (done.returncode, done.stdout) == (241, "")
        assert re.fullmatch(f"mpirt: {file}[,:] {re.escape(said)}\n", done.stderr)

    def test_of_standard_input_name_it(self) -> None:
        done = mpirt("hosts", "-", stdin="worker-0 4\n")

        assert done.returncode == 241
        assert done.stderr.startswith("mpirt: standard input, line 1: host: expected slots=N")

    @pytest.mark.parametrize(
        ("file", "shell", "said"),
        [
            pytest.param("/nowhere/hostfile", "", "/nowhere/hostfile: No such file or directory", id="missing"),
            pytest.param("/", "", "/: Is a directory", id="a folder"),
            pytest.param("-", "<&-", "standard input: Bad file descriptor", id="a closed standard input"),
        ],
    )
    def test_what_can_not_be_read_is_named(self, file: str, shell: str, said: str) -> None:
        done = mpirt("hosts", file, shell=shell)

        assert (done.returncode, done.stderr) == (240, f"mpirt: cannot read {said}\n")


PRINTED = {
    "openmpi4": """\
export OMPI_MCA_plm_rsh_agent=mpirt-rsh
export OMPI_MCA_plm_rsh_no_tree_spawn=1
export OMPI_MCA_orte_leave_session_attached=1
export OMPI_MCA_plm_rsh_num_concurrent=200
export OMPI_MCA_hwloc_base_binding_policy=none
""",
    "openmpi5": """\
export PRTE_MCA_plm_ssh_agent=mpirt-rsh
export PRTE_MCA_plm_ssh_no_tree_spawn=1
export PRTE_MCA_prte_leave_session_attached=1
export PRTE_MCA_plm_ssh_num_concurrent=200
export PRTE_MCA_hwloc_default_binding_policy=none
""",
    "mpich": """\
export HYDRA_LAUNCHER=rsh
export HYDRA_LAUNCHER_EXEC=mpirt-rsh
""",
    "intel": """\
export I_MPI_HYDRA_BOOTSTRAP=rsh
export I_MPI_HYDRA_BOOTSTRAP_EXEC=mpirt-rsh
export I_MPI_HYDRA_BRANCH_COUNT=0
export I_MPI_PIN=0
""",
    "horovod": """\
export OMPI_MCA_plm_rsh_agent=/etc/mpi/kubexec.sh
export OMPI_MCA_plm_rsh_no_tree_spawn=1
export OMPI_MCA_orte_leave_session_attached=1
export OMPI_MCA_plm_rsh_num_concurrent=200
export OMPI_MCA_hwloc_base_binding_policy=none
""",
}


@promise(
    "mpirt env prints the variables of each launcher as shell lines.", of="mpirt", no_cluster="it only prints"
)
@pytest.mark.parametrize("launcher", PRINTED)
def test_the_variables_are_lines_for_a_shell(capsys: pytest.CaptureFixture[str], launcher: str) -> None:
    code = main(["env", launcher, "--workers", "200"])

    assert (code, capsys.readouterr().out) == (0, PRINTED[launcher])


def test_an_unknown_launcher_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["env", "slurm"])

    said = capsys.readouterr().err
    assert code == 240
    assert all(launcher in said for launcher in PRINTED)
