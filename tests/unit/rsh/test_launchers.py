"""Daemons of Open MPI and PRRTE are started so that workers need nothing of ours."""

from __future__ import annotations

import pytest

from mpirt.errors import UsageError
from mpirt.rsh.invocation.order import is_of_hydra, is_of_prrte, prepared, starts_daemon
from tests.promises import promise

AGENT = '"mpirt-rsh"'
LIST = '"mpirt-rsh : sh"'


def orted(*more: str, daemons: int = 3, agent: str = AGENT, program: str = " orted") -> tuple[str, ...]:
    """As seen with Open MPI 4.1.4."""
    return (
        *(program, "-mca", "ess", '"env"', "-mca", "ess_base_num_procs", f'"{daemons}"'),
        *("-mca", "orte_hnp_uri", '"1.0;tcp://10.0.0.1:40"', *more, "-mca", "plm_rsh_agent", agent),
    )


def prted(*more: str, daemons: int = 3, agent: str = AGENT) -> tuple[str, ...]:
    """As seen with PRRTE 3.0.8."""
    start = "PRTE_PREFIX=/usr;export PRTE_PREFIX;LD_LIBRARY_PATH=/usr/lib:$LD_LIBRARY_PATH;/usr/bin/prted"
    return (
        *(start, "--prtemca", "ess", '"env"', "--prtemca", "ess_base_num_procs", f'"{daemons}"', *more),
        *("--prtemca", "plm_ssh_agent", agent, "--prtemca", "plm", '"ssh"'),
    )


class TestTheAgentsName:
    @pytest.mark.parametrize(
        ("agent", "expected"),
        [
            ('"mpirt-rsh"', '"mpirt-rsh : sh"'),
            ("mpirt-rsh", '"mpirt-rsh : sh"'),
            ('"/etc/mpi/kubexec.sh"', '"/etc/mpi/kubexec.sh : sh"'),
            ('"mpirt-rsh --namespace ml"', '"mpirt-rsh --namespace ml : sh"'),
            ('"mpirt-rsh : sh"', '"mpirt-rsh : sh"'),
            ('"ssh : rsh"', '"ssh : rsh"'),
            ('""', '""'),
            ('"$HOME/mpirt-rsh"', '"$HOME/mpirt-rsh"'),
        ],
    )
    def test_it_becomes_a_list_that_any_worker_can_satisfy(self, agent: str, expected: str) -> None:
        assert prepared(orted(agent=agent)) == orted(agent=expected)

    @pytest.mark.parametrize(
        "program",
        [
            "orted",
            '" orted"',
            "          PATH=/usr/bin:$PATH ; export PATH ;   /usr/bin/orted",
            "cd /data;/usr/bin/orted",
        ],
    )
    def test_it_is_found_however_the_daemon_is_started(self, program: str) -> None:
        assert prepared(orted(program=program)) == orted(program=program, agent=LIST)

    def test_it_is_found_behind_a_profile(self) -> None:
        around = ("(", "test", "!", "-r", "./.profile", "||", ".", "./.profile;")

        assert prepared((*around, *orted(), ")")) == (*around, *orted(agent=LIST), ")")

    def test_prrte_calls_it_by_another_name(self) -> None:
        assert prepared(prted()) == prted(agent=LIST)

    def test_other_parameters_are_left_alone(self) -> None:
        more = ("-mca", "plm", '"rsh"', "-x", "plm_rsh_agent", AGENT)

        assert prepared(orted(*more)) == orted(*more, agent=LIST)

    @pytest.mark.parametrize(
        "words",
        [
            ("hostname",),
            ("echo", "-mca", "plm_rsh_agent", AGENT),
            ('"/usr/bin/hydra_pmi_proxy"', "--launcher", "rsh", "--launcher-exec", "mpirt-rsh"),
            ("orted-report", "-mca", "plm_rsh_agent", AGENT),
            ("", " "),
        ],
    )
    def test_other_commands_are_left_alone(self, words: tuple[str, ...]) -> None:
        assert prepared(words) == words

    def test_a_launchers_daemon_is_told_from_others(self) -> None:
        assert is_of_prrte(("PRTE_PREFIX=/usr;/usr/bin/prted", "--tree-spawn"))
        assert not is_of_prrte(("/usr/bin/orted",))
        assert [starts_daemon(words) for words in (orted(), prted(), ("hostname",))] == [True, True, False]

    @pytest.mark.parametrize("program", ['"/usr/bin/hydra_pmi_proxy"', "/opt/intel/bin//hydra_bstrap_proxy"])
    def test_those_of_mpich_and_intel_mpi_are_known(self, program: str) -> None:
        assert is_of_hydra((program, "--control-port", "launcher:40", "--proxy-id", "0"))
        assert not is_of_hydra(orted())


class TestTheTree:
    def test_up_to_64_workers_are_all_started_from_here(self) -> None:
        assert prepared(orted("--tree-spawn", daemons=65)) == orted("--tree-spawn", daemons=65, agent=LIST)

    @promise(
        "With more workers than Open MPI's tree reaches, mpirt-rsh names the variables to set.",
        of="mpirt-rsh",
        no_cluster="the words of mpirun decide, and nothing is contacted",
    )
    def test_more_are_refused_with_what_to_set(self) -> None:
        with pytest.raises(UsageError) as caught:
            prepared(orted("--tree-spawn", daemons=66))

        assert str(caught.value) == (
            "with 65 workers some would have to start others: a tree's node has 64 children; set "
            "OMPI_MCA_plm_rsh_no_tree_spawn=1 OMPI_MCA_orte_leave_session_attached=1 "
            "OMPI_MCA_plm_rsh_num_concurrent=65"
        )

    def test_prrte_has_other_variables(self) -> None:
        with pytest.raises(UsageError) as caught:
            prepared(prted("--tree-spawn", daemons=101))

        assert str(caught.value) == (
            "with 100 workers some would have to start others: a tree's node has 64 children; set "
            "PRTE_MCA_plm_ssh_no_tree_spawn=1 PRTE_MCA_prte_leave_session_attached=1 "
            "PRTE_MCA_plm_ssh_num_concurrent=100"
        )

    def test_a_wider_tree_reaches_further(self) -> None:
        words = ("--tree-spawn", "-mca", "routed_radix", '"128"')

        assert prepared(orted(*words, daemons=129)) == orted(*words, daemons=129, agent=LIST)

    @pytest.mark.parametrize("daemons", ["", "many"])
    def test_a_number_that_is_none_refuses_nothing(self, daemons: str) -> None:
        words = ("orted", "--tree-spawn", "-mca", "ess_base_num_procs", daemons)

        assert prepared(words) == words


class TestWithoutATree:
    def test_a_daemon_does_not_leave_its_session(self) -> None:
        assert prepared(orted("--daemonize")) == orted(agent=LIST)

    def test_a_launcher_that_would_wait_for_it_to_leave_is_refused(self) -> None:
        with pytest.raises(
            UsageError, match="with 129 workers the launcher waits for daemons to detach: it starts 128"
        ):
            prepared(orted("--daemonize", daemons=130))

    @pytest.mark.parametrize(
        ("words", "more", "daemons"),
        [
            (("-mca", "plm_rsh_num_concurrent", '"200"'), ("--daemonize",), 130),
            (("-mca", "orte_leave_session_attached", '"1"'), (), 1000),
        ],
        ids=["as many are started at a time", "they keep their sessions"],
    )
    def test_a_launcher_that_does_not_wait_for_it_is_not_refused(
        self, words: tuple[str, ...], more: tuple[str, ...], daemons: int
    ) -> None:
        assert prepared(orted(*more, *words, daemons=daemons)) == orted(*words, daemons=daemons, agent=LIST)
