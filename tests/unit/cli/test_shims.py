"""`mpirt shims`: where mpirt-rsh is put under other names, and what is left alone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mpirt.cli.launchers import shell_lines
from tests.promises import promise
from tests.unit.cli.program import MPIRT, mpirt

RSH = Path(sys.executable).with_name("mpirt-rsh")

OPEN_MPI = """\
export OMPI_MCA_plm_rsh_no_tree_spawn=1
export OMPI_MCA_orte_leave_session_attached=1
export OMPI_MCA_plm_rsh_num_concurrent=128
export OMPI_MCA_hwloc_base_binding_policy=none
"""


def shims(*words: str | Path, program: Path = MPIRT, **environ: str) -> subprocess.CompletedProcess[str]:
    return mpirt("shims", *words, program=program, **environ)


def ended(done: subprocess.CompletedProcess[str], code: int, complaint: str) -> bool:
    """Whether it ended so, with one line and nothing to evaluate."""
    return (done.returncode, done.stdout, done.stderr) == (code, "", f"mpirt: {complaint}\n")


class TestTheSshShim:
    def test_it_speaks_as_ssh_does(self, tmp_path: Path) -> None:
        shims(tmp_path / "bin", "--kubexec", tmp_path / "kubexec.sh")

        done = subprocess.run([tmp_path / "bin/ssh", "-V"], capture_output=True, check=True, text=True, timeout=60)
        assert (tmp_path / "bin/ssh").readlink() == RSH
        assert done.stderr.startswith("mpirt-rsh ")

    def test_a_second_run_changes_nothing(self, tmp_path: Path) -> None:
        first = shims(tmp_path, "--kubexec", tmp_path / "kubexec.sh")
        second = shims(tmp_path, "--kubexec", tmp_path / "kubexec.sh")

        assert (second.returncode, second.stdout) == (0, first.stdout)
        assert f"mpirt: {tmp_path}/ssh is there already\n" in second.stderr
        assert sorted(path.name for path in tmp_path.iterdir()) == ["kubexec.sh", "ssh"]

    def test_one_of_an_mpirt_that_is_gone_is_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "ssh").symlink_to("/nowhere/mpirt-rsh")

        assert shims(tmp_path, "--kubexec", tmp_path / "kubexec.sh").returncode == 0
        assert (tmp_path / "ssh").readlink() == RSH

    @promise(
        "A real ssh is never replaced by mpirt shims without --force.",
        of="mpirt",
        no_cluster="it only writes files",
    )
    @pytest.mark.parametrize("other", ["a file", "a link"])
    def test_what_is_not_ours_stays(self, tmp_path: Path, other: str) -> None:
        ssh = tmp_path / "ssh"
        if other == "a file":
            ssh.write_text("the real one")
        else:
            ssh.symlink_to("/usr/bin/env")
        before = ssh.read_bytes()

        done = shims(tmp_path, "--kubexec", tmp_path / "kubexec.sh")

        assert ended(done, 241, f"{ssh} is there already, and not from mpirt; --force replaces it")
        assert ssh.read_bytes() == before

    def test_it_goes_with_force(self, tmp_path: Path) -> None:
        (tmp_path / "ssh").write_text("the real one")

        done = shims(tmp_path, "--force", "--kubexec", tmp_path / "kubexec.sh")

        assert done.returncode == 0
        assert (tmp_path / "ssh").readlink() == RSH

    def test_a_folder_stays_even_then(self, tmp_path: Path) -> None:
        (tmp_path / "ssh").mkdir()

        done = shims(tmp_path, "--force", "--kubexec", tmp_path / "kubexec.sh")

        assert done.returncode == 241
        assert f"can't write {tmp_path}/ssh: Is a directory" in done.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["ssh"]

    def test_a_place_that_can_not_be_written_is_named_with_the_remedy(self) -> None:
        done = shims("/proc/shims")

        assert done.returncode == 241
        assert done.stderr.startswith(
            "mpirt: can't write /proc/shims/ssh: No such file or directory; run it as root"
        )


class TestKubexec:
    def test_it_is_written_and_takes_no_word_after_the_host_for_an_option(self, tmp_path: Path) -> None:
        shims(tmp_path, "--kubexec", tmp_path / "mpi/kubexec.sh")

        # As a command it would run, if there were a cluster; as an option it would be unknown.
        words = [str(tmp_path / "mpi/kubexec.sh"), "worker-0", "-Z"]
        nowhere = {"HOME": str(tmp_path)}
        done = subprocess.run(words, capture_output=True, check=False, env=nowhere, text=True, timeout=60)
        assert (done.returncode, "no API server configured" in done.stderr) == (241, True)
        assert (tmp_path / "mpi/kubexec.sh").readlink() == RSH

    @pytest.mark.parametrize("make", [Path.touch, Path.mkdir], ids=["someone else's", "a folder"])
    def test_without_it_the_ssh_shim_has_to_do(self, tmp_path: Path, make: Callable[[Path], None]) -> None:
        place = tmp_path / "kubexec.sh"
        make(place)

        done = shims(tmp_path / "bin", "--kubexec", place)

        assert done.returncode == 0
        problem = f"{place} is there already, and not from mpirt; --force replaces it"
        assert f"mpirt: {problem}; horovodrun takes {tmp_path}/bin/ssh instead\n" in done.stderr
        assert "plm_rsh_agent=mpirt-rsh\n" in done.stdout


class TestTheLines:
    def test_a_kubexec_at_its_place_is_what_horovodrun_is_told(self) -> None:
        lines = shell_lines(Path("/opt/shims"), kubexec=Path("/etc/mpi/kubexec.sh"), workers=128)

        agent = "export OMPI_MCA_plm_rsh_agent=/etc/mpi/kubexec.sh\n"
        assert lines == f'export PATH=/opt/shims:"$PATH"\n{agent}{OPEN_MPI}'

    def test_a_kubexec_elsewhere_is_not_announced(self, tmp_path: Path) -> None:
        done = shims(tmp_path, "--kubexec", tmp_path / "kubexec.sh")

        agent = "export OMPI_MCA_plm_rsh_agent=mpirt-rsh\n"
        assert done.stdout == f'export PATH={tmp_path}:"$PATH"\n{agent}{OPEN_MPI}'

    def test_a_shell_understands_them(self, tmp_path: Path) -> None:
        folder = tmp_path / "it's here"
        done = shims(folder, "--kubexec", tmp_path / "kubexec.sh", "--workers", "300")

        script = f"{done.stdout}command -v ssh; echo $OMPI_MCA_plm_rsh_num_concurrent"
        told = subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=True, text=True, timeout=60)
        assert told.stdout == f"{folder}/ssh\n300\n"


class TestTheAgent:
    def test_the_one_beside_the_program_comes_before_that_on_path(self, tmp_path: Path) -> None:
        stranger = tmp_path / "other/mpirt-rsh"
        stranger.parent.mkdir()
        stranger.touch(mode=0o755)

        shims(tmp_path / "bin", "--kubexec", tmp_path / "kubexec.sh", PATH=str(stranger.parent))

        assert (tmp_path / "bin/ssh").readlink() == RSH

    def test_a_program_that_stands_alone_takes_the_one_on_path(self, tmp_path: Path) -> None:
        alone = tmp_path / "alone"
        alone.symlink_to(MPIRT)

        shims(tmp_path / "bin", "--kubexec", tmp_path / "kubexec.sh", program=alone, PATH=str(MPIRT.parent))

        assert (tmp_path / "bin/ssh").readlink() == RSH

    def test_without_any_it_says_so(self, tmp_path: Path) -> None:
        alone = tmp_path / "alone"
        alone.symlink_to(MPIRT)

        done = shims(tmp_path / "bin", program=alone, PATH="/nowhere")

        complaint = "mpirt-rsh is neither beside this program nor on PATH; run: pip install mpirt"
        assert ended(done, 241, complaint)

    def test_it_is_not_replaced_by_a_link_to_itself(self, tmp_path: Path) -> None:
        done = shims(tmp_path, "--force", "--kubexec", RSH)

        assert f"mpirt: {RSH} is there already\n" in done.stderr
        assert not RSH.is_symlink()

    def test_a_copy_of_it_is_as_good_as_a_link(self, tmp_path: Path) -> None:
        shutil.copy(RSH, tmp_path / "kubexec.sh")

        done = shims(tmp_path, "--kubexec", tmp_path / "kubexec.sh")

        assert f"mpirt: {tmp_path}/kubexec.sh is there already\n" in done.stderr
        assert not (tmp_path / "kubexec.sh").is_symlink()
