"""The command for the pod: launchers' daemons, which need nothing of ours there, and its variables."""

from __future__ import annotations

import pytest

from mpirt.errors import UsageError
from mpirt.rsh.invocation.order import exported, is_of_hydra, is_of_prrte, matches, prepared, starts_daemon
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
    def test_the_agents_name_becomes_a_list_that_any_worker_can_satisfy(self, agent: str, expected: str) -> None:
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
    def test_the_agents_name_is_found_however_the_daemon_is_started(self, program: str) -> None:
        assert prepared(orted(program=program)) == orted(program=program, agent=LIST)

    def test_the_agents_name_is_found_behind_a_profile(self) -> None:
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


HERE = {"LANG": "C", "LC_ALL": "de", "LC_TIME": "fr", "PSSH_NODENUM": "7", "HOME": "/root", "EMPTY": ""}


def sent(*settings: str, here: dict[str, str] = HERE) -> dict[str, str]:
    return exported(settings, (), here)


def assigned(*settings: str) -> dict[str, str]:
    return exported((), settings, HERE)


class TestPatterns:
    @pytest.mark.parametrize("pattern", ["A", "?", "*", "**", "A*", "*A", "?*"])
    def test_a_star_is_any_text_and_a_question_mark_any_letter(self, pattern: str) -> None:
        assert matches("A", pattern)

    @pytest.mark.parametrize("pattern", ["", "a", "??", "A?", "B*", "*B", "A*B", "[A]"])
    def test_all_of_the_name_has_to_match(self, pattern: str) -> None:
        assert not matches("A", pattern)

    def test_a_star_may_stand_for_any_part(self) -> None:
        assert matches("AXBXC", "A*B*C")
        assert matches("ABBC", "*B?")
        assert not matches("ABCB", "*B?C")

    def test_many_stars_take_no_time(self) -> None:
        assert not matches("A" * 200, "*A" * 100 + "B")


class TestSendEnv:
    @pytest.mark.parametrize(
        ("settings", "expected"),
        [
            (("PSSH_NODENUM", "LANG EMPTY", "ABSENT"), {"PSSH_NODENUM": "7", "LANG": "C", "EMPTY": ""}),
            (("LC_*",), {"LC_ALL": "de", "LC_TIME": "fr"}),
            (("LANG LC_*", "-LC_*"), {"LANG": "C"}),
            (("LANG HOME", "-*"), {}),
            (("-LANG LANG",), {"LANG": "C"}),
            (("LC_* -LC_ALL",), {"LC_ALL": "de", "LC_TIME": "fr"}),
        ],
        ids=[
            *("names", "a pattern", "a dash takes back patterns before it", "all of them", "and none behind it"),
            "a dash is about patterns and not about variables",
        ],
    )
    def test_variables_are_sent_by_names_and_patterns(
        self, settings: tuple[str, ...], expected: dict[str, str]
    ) -> None:
        assert sent(*settings) == expected

    def test_what_no_shell_can_export_stays_here(self) -> None:
        here = {"BASH_FUNC_x%%": "() { :; }", "A-B": "1", "UID": "0", "SHELLOPTS": "e", "A": "1"}

        assert sent("*", here=here) == {"A": "1"}

    @pytest.mark.parametrize("setting", ["A=1", '""', "A B="])
    def test_a_value_is_not_sent_but_set(self, setting: str) -> None:
        with pytest.raises(UsageError) as caught:
            sent(setting)

        assert str(caught.value) == f"-o SendEnv={setting}: expected names of variables; values are for -o SetEnv"


class TestSetEnv:
    def test_each_word_is_a_variable(self) -> None:
        assert assigned("A=1 B=x=y", "C=") == {"A": "1", "B": "x=y", "C": ""}

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ('A="x  y"', "x  y"),
            ("A='x \"y'", 'x "y'),
            (r"A=x\ y", "x y"),
            (r"A=\"x\'", "\"x'"),
            (r"A=\\", "\\"),
            (r"A=\n", r"\n"),
            (r"""A='x\'y'""", "x'y"),
            (r'A="x\ y"', r"x\ y"),
            ('"A=x y"', "x y"),
            ("\tA=x\t", "x"),
            ("A=x\\\t", "x\\"),
            (r"A=x\y", r"x\y"),
            ("A=x\\", "x\\"),
        ],
    )
    def test_quotes_are_read_as_by_ssh(self, text: str, value: str) -> None:
        assert assigned(text) == {"A": value}

    def test_the_first_value_of_a_name_counts(self) -> None:
        assert assigned("A=1 A=2", "A=3 B=1") == {"A": "1", "B": "1"}

    def test_a_value_that_is_set_counts_more_than_one_that_is_sent(self) -> None:
        assert exported(["LANG"], ["LANG=en"], HERE) == {"LANG": "en"}

    @pytest.mark.parametrize("text", ["A", "A=1 B", '""'])
    def test_a_name_needs_a_value(self, text: str) -> None:
        with pytest.raises(UsageError) as caught:
            assigned(text)

        assert str(caught.value) == f"-o SetEnv={text}: expected NAME=VALUE"

    @pytest.mark.parametrize(
        ("name", "why"),
        [
            *((name, "is no name for an environment variable") for name in ("", "A-B", "1A", "\u00c4")),
            ("PPID", "can't be set: shells do that themselves"),
        ],
    )
    def test_a_name_that_no_shell_takes_is_refused(self, name: str, why: str) -> None:
        with pytest.raises(UsageError) as caught:
            assigned(f"{name}=1")

        assert str(caught.value) == f"-o SetEnv: {name!r} {why}"

    @pytest.mark.parametrize("text", ["A='x", 'A="x', "A=\"x'"])
    def test_a_quote_needs_its_end(self, text: str) -> None:
        with pytest.raises(UsageError, match="has a quote without an end"):
            assigned(text)
