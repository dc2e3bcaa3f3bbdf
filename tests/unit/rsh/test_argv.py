"""What launchers say on the command line, and what is made of it."""

from __future__ import annotations

import pytest

from mpirt.errors import UsageError
from mpirt.rsh.argv import Invocation, Wants, parse, parse_host


def rsh(*words: str) -> Invocation | Wants:
    return parse("/usr/bin/mpirt-rsh", words)


class TestHosts:
    @pytest.mark.parametrize(
        ("host", "expected"),
        [
            ("train-worker-0", ("", "train-worker-0", "")),
            ("mpi@train-worker-0", ("mpi", "train-worker-0", "")),
            ("train-worker-0.train", ("", "train-worker-0", "")),
            ("train-worker-0.train.ml", ("", "train-worker-0", "ml")),
            ("train-worker-0.train.ml.svc", ("", "train-worker-0", "ml")),
            ("mpi@train-worker-0.train.ml.svc.cluster.local.", ("mpi", "train-worker-0", "ml")),
            ("train-worker-0.hosts.example.org", ("", "train-worker-0", "")),
        ],
    )
    def test_the_first_label_is_the_pod(self, host: str, expected: tuple[str, str, str]) -> None:
        assert parse_host(host) == expected

    @pytest.mark.parametrize(
        "host",
        ["Worker-0", "worker_0", "-", "a..b", ".a", "a-.b", "10.0.0.1:22", "[::1]", "x" * 64, "ssh://a", "a b"],
    )
    def test_a_name_that_no_pod_can_have_is_refused(self, host: str) -> None:
        with pytest.raises(UsageError, match=r"can't be a pod: a pod's name is of lower-case letters"):
            parse_host(host)

    def test_a_user_must_have_a_name(self) -> None:
        with pytest.raises(UsageError, match=r"'@worker-0' has no user before the @"):
            parse_host("@worker-0")


class TestRsh:
    def test_the_words_after_the_host_are_the_command(self) -> None:
        assert rsh("worker-0", "echo", "-n", "a  b") == Invocation("worker-0", ("echo", "-n", "a  b"))

    def test_open_mpi_gives_words_with_quotes_in_them(self) -> None:
        words = (" orted", "-mca", "ess", '"env"', "-mca", "orte_hnp_uri", '"62.0;tcp://10.0.0.1:40"')

        assert rsh("worker-0", *words) == Invocation("worker-0", words)

    def test_open_mpi_may_wrap_a_command_in_parentheses(self) -> None:
        words = ("(", "test", "!", "-r", "./.profile", "||", ".", "./.profile;", '" orted"', ")")

        assert rsh("worker-0", *words) == Invocation("worker-0", words)

    def test_a_dash_alone_ends_the_options(self) -> None:
        with pytest.raises(UsageError, match="'-' can't be a pod"):
            rsh("-", "true")

    def test_direct_is_ours(self) -> None:
        assert rsh("--direct", "worker-0", "true") == Invocation("worker-0", ("true",), direct=True)

    @pytest.mark.parametrize("words", [("--help",), ("worker-0", "--help"), ("--help", "--version")])
    def test_help_can_be_wanted(self, words: tuple[str, ...]) -> None:
        assert rsh(*words) == Wants("help")

    def test_the_version_can_be_wanted(self) -> None:
        assert rsh("--version") == Wants("version")

    @pytest.mark.parametrize("words", [("-V",), ("-V", "worker-0", "true")])
    def test_the_version_can_be_wanted_as_of_ssh(self, words: tuple[str, ...]) -> None:
        assert rsh(*words) == Wants("V")


class TestSsh:
    @pytest.mark.parametrize(
        "words",
        [
            pytest.param(("-x", "worker-0", "true"), id="Open MPI, under the name of ssh"),
            pytest.param(("-p", "2222", "-i", "/key", "worker-0", "true"), id="words before the host"),
            pytest.param(("worker-0", "-p", "2222", "-i", "/key", "true"), id="words after the host"),
            pytest.param(("-p2222", "-oBatchMode=yes", "worker-0", "true"), id="values in the same word"),
            pytest.param(("-2ax", "-qT", "-vvv", "worker-0", "true"), id="flags in one word"),
            pytest.param(("-qp", "2222", "worker-0", "true"), id="a value after flags in one word"),
            pytest.param(("--", "worker-0", "--", "true"), id="ends of options"),
            pytest.param(
                ("-o", "PasswordAuthentication=no", "-o", "StrictHostKeyChecking=no", "worker-0", "true"),
                id="Horovod",
            ),
            pytest.param(("-o", "UserKnownHostsFile /dev/null", "worker-0", "true"), id="a setting without ="),
            pytest.param(("-o", "ProxyJump=none", "worker-0", "true"), id="forwarding turned off"),
        ],
    )
    def test_what_makes_no_sense_here_is_ignored(self, words: tuple[str, ...]) -> None:
        assert rsh(*words) == Invocation("worker-0", ("true",))

    def test_horovod_gives_its_patience_after_the_host(self) -> None:
        found = rsh("-o", "StrictHostKeyChecking=no", "worker-0", "-p", "22", "-o", "ConnectTimeout=10", "true")

        assert found == Invocation("worker-0", ("true",), connect_seconds=10.0)

    def test_mpi_operator_gives_attempts(self) -> None:
        found = rsh("-oConnectionAttempts=10", "worker-0", "true")

        assert found == Invocation("worker-0", ("true",), attempts=10)

    def test_the_last_setting_counts_and_its_name_has_no_case(self) -> None:
        found = rsh("-oconnecttimeout=1", "-oCONNECTTIMEOUT=7", "worker-0", "true")

        assert found == Invocation("worker-0", ("true",), connect_seconds=7.0)

    def test_a_time_of_none_is_no_time(self) -> None:
        assert rsh("-oConnectTimeout=none", "worker-0", "true") == Invocation("worker-0", ("true",))

    def test_pdsh_gives_the_user_by_itself(self) -> None:
        assert rsh("-2", "-a", "-x", "-l", "mpi", "worker-0", "true") == Invocation(
            "worker-0", ("true",), user="mpi"
        )

    def test_a_user_before_the_host_counts_more(self) -> None:
        assert rsh("-l", "a", "b@worker-0", "true") == Invocation("worker-0", ("true",), user="b")

    def test_stdin_can_be_declined(self) -> None:
        assert rsh("-n", "worker-0", "cat") == Invocation("worker-0", ("cat",), null_stdin=True)

    def test_a_terminal_can_be_asked_for(self) -> None:
        assert rsh("-tt", "worker-0", "top") == Invocation("worker-0", ("top",), wants_terminal=True)

    def test_what_follows_the_first_word_of_the_command_is_the_commands(self) -> None:
        assert rsh("worker-0", "ls", "-L", "-Z", "--x") == Invocation("worker-0", ("ls", "-L", "-Z", "--x"))


class TestKubexec:
    def test_nothing_is_an_option(self) -> None:
        found = parse("/etc/mpi/kubexec.sh", ["worker-0", "-x", "true"])

        assert found == Invocation("worker-0", ("-x", "true"))

    def test_horovods_one_word_is_a_command(self) -> None:
        word = "cd /data > /dev/null 2>&1 ; env HOROVOD_RANK=1 python train.py"

        assert parse("kubexec.sh", ["worker-0", word]) == Invocation("worker-0", (word,))

    def test_without_words_there_is_no_host(self) -> None:
        with pytest.raises(UsageError, match="no host; the form is"):
            parse("kubexec.sh", [])


class TestMistakes:
    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ((), "no host; the form is: mpirt-rsh [options] HOST COMMAND..."),
            (
                ("worker-0",),
                "no command for worker-0; write it after the host, as in: mpirt-rsh worker-0 hostname",
            ),
            (
                ("worker-0", " "),
                "no command for worker-0; write it after the host, as in: mpirt-rsh worker-0 hostname",
            ),
            (("-Z", "worker-0", "true"), "unknown option -Z in '-Z'; ssh's options are understood, see --help"),
            (
                ("--verbose", "worker-0", "true"),
                "unknown option '--verbose'; there are --direct, --help and --version, and ssh's own",
            ),
            (("-p",), "option -p needs a value, as in: -p VALUE"),
            (("-o", "worker-0"), "-o 'worker-0' is no setting; write it as -o NAME=VALUE"),
            (("-oConnectTimeout=soon", "a", "b"), "-o connecttimeout=soon: expected a number from 1 to 86400"),
            (("-oConnectTimeout=0", "a", "b"), "-o connecttimeout=0: expected a number from 1 to 86400"),
            (("-oConnectionAttempts=x", "a", "b"), "-o connectionattempts=x: expected a number from 1 to 1000"),
        ],
    )
    def test_a_mistake_is_named_with_its_remedy(self, words: tuple[str, ...], message: str) -> None:
        with pytest.raises(UsageError) as caught:
            rsh(*words)

        assert str(caught.value) == message

    @pytest.mark.parametrize(
        "words",
        [("-L", "80:a:80"), ("-R80:a:80",), ("-D", "80"), ("-W", "a:1"), ("-J", "a"), ("-f",), ("-N",), ("-M",)],
    )
    def test_what_cannot_be_honoured_is_refused(self, words: tuple[str, ...]) -> None:
        with pytest.raises(UsageError, match=f"option {words[0][:2]} can't be honoured"):
            rsh(*words, "worker-0", "true")

    @pytest.mark.parametrize("setting", ["LocalForward=80 a:80", "remoteforward=80", "ProxyJump=a", "Tunnel=yes"])
    def test_forwarding_by_a_setting_is_refused(self, setting: str) -> None:
        with pytest.raises(UsageError, match="can't be honoured"):
            rsh("-o", setting, "worker-0", "true")
