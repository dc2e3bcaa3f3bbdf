"""`mpirt env`: what a launcher has to be told."""

from __future__ import annotations

import pytest

from mpirt.cli.main import main
from tests.promises import promise

PRINTED = {
    "openmpi4": """\
export OMPI_MCA_plm_rsh_agent=mpirt-rsh
export OMPI_MCA_plm_rsh_no_tree_spawn=1
export OMPI_MCA_orte_leave_session_attached=1
export OMPI_MCA_plm_rsh_num_concurrent=200
""",
    "openmpi5": """\
export PRTE_MCA_plm_ssh_agent=mpirt-rsh
export PRTE_MCA_plm_ssh_no_tree_spawn=1
export PRTE_MCA_prte_leave_session_attached=1
export PRTE_MCA_plm_ssh_num_concurrent=200
""",
    "mpich": """\
export HYDRA_LAUNCHER=rsh
export HYDRA_LAUNCHER_EXEC=mpirt-rsh
""",
    "intel": """\
export I_MPI_HYDRA_BOOTSTRAP=rsh
export I_MPI_HYDRA_BOOTSTRAP_EXEC=mpirt-rsh
export I_MPI_HYDRA_BRANCH_COUNT=0
""",
    "horovod": """\
export OMPI_MCA_plm_rsh_agent=/etc/mpi/kubexec.sh
export OMPI_MCA_plm_rsh_no_tree_spawn=1
export OMPI_MCA_orte_leave_session_attached=1
export OMPI_MCA_plm_rsh_num_concurrent=200
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
