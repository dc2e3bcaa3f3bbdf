"""What launchers say on the command line, and what is made of it."""

from __future__ import annotations

import importlib.metadata

import pytest

from mpirt.errors import UsageError
from mpirt.rsh.invocation.argv import Host, Invocation, parse, parse_host
from mpirt.rsh.invocation.options import HELP, SFTP, Reply, Wants, read_time, reply, version
from tests.promises import promise

LABEL = "is of lower-case letters, digits and dashes, up to 63 of them, and begins and ends with a letter or digit"


def rsh(*words: str) -> Invocation | Wants:
    return parse("/usr/bin/mpirt-rsh", words)


class TestHosts:
    @pytest.mark.parametrize(
        ("host", "expected"),
        [
            ("train-worker-0", Host("train-worker-0")),
            ("mpi@train-worker-0", Host("train-worker-0")),
            ("train-worker-0.train", Host("train-worker-0", service="train")),
            ("train-worker-0.train.ml", Host("train-worker-0", service="train", namespace="ml")),
            ("train-worker-0.train.ml.svc", Host("train-worker-0", service="train", namespace="ml")),
            (
                "mpi@train-worker-0.train.ml.svc.cluster.local.",
                Host("train-worker-0", service="train", namespace="ml"),
            ),
            ("train-worker-0.hosts.example.org", Host("train-worker-0", service="hosts")),
        ],
    )
    def test_the_first_label_is_the_pod(self, host: str, expected: Host) -> None:
        assert parse_host(host) == expected

    @pytest.mark.parametrize(
        "address", ["10.0.0.7", "255.255.255.255", "fd00::7", "fd00:0:0::a07", "::ffff:10.0.0.7"]
    )
    def test_an_ip_address_is_one_host(self, address: str) -> None:
        assert parse_host(f"mpi@{address}") == Host(address, is_address=True)

    @pytest.mark.parametrize("host", ["10.0.0.256", "10.0.0", "10.0.0.7.8"])
    def test_numbers_that_are_no_address_are_names(self, host: str) -> None:
        assert not parse_host(host).is_address

    @pytest.mark.parametrize(
        "host",
        [
            "Worker-0",
            "worker_0",
            "-",
            "a..b",
            ".a",
            "a-.b",
            "10.0.0.1:22",
            "[::1]",
            "::g",
            "fe80::1%eth0",
            "x" * 64,
            "ssh://a",
            "a b",
        ],
    )
    def test_a_name_that_no_pod_can_have_is_refused(self, host: str) -> None:
        with pytest.raises(UsageError, match=r"can't be a pod: a pod's name is of lower-case letters"):
            parse_host(host)

    def test_a_user_must_have_a_name(self) -> None:
        with pytest.raises(UsageError, match=r"'@worker-0' has no user before the @"):
            parse_host("@worker-0")


ORTED = (" orted", "-mca", "ess", '"env"', "-mca", "orte_hnp_uri", '"62.0;tcp://10.0.0.1:40"')
WRAPPED = ("(", "test", "!", "-r", "./.profile", "||", ".", "./.profile;", '" orted"', ")")


def asks(words: str, *command: str, **given: object) -> tuple[tuple[str, ...], Invocation]:
    """Words for the host worker-0 that end with this command, and what they ask for."""
    command = command or ("true",)
    return (*words.split(), *command), Invocation("worker-0", command, **given)  # type: ignore[arg-type]


# fmt: off
INVOCATIONS: dict[str, tuple[tuple[str, ...], Invocation]] = {
    "the words after the host are the command": asks("worker-0", "echo", "-n", "a  b"),
    "Open MPI gives words with quotes in them": asks("worker-0", *ORTED),
    "Open MPI may wrap a command in parentheses": asks("worker-0", *WRAPPED),
    "what follows the command's first word is the command's": asks("worker-0", "ls", "-L", "-Z", "--x"),
    "container and context": asks("--container=main --context kind worker-0", container="main", context="kind"),
    "of an option given twice the first counts": asks("--container=a --container=b worker-0", container="a"),
    "-v before the host": asks("-v worker-0", verbose=True),
    "-v after the host": asks("worker-0 -vvv", verbose=True),
    "a private switchboard is the agent's business": asks("--direct worker-0"),
    "Horovod gives its patience after the host":
        asks("-o StrictHostKeyChecking=no worker-0 -p 22 -o ConnectTimeout=10", connect_seconds=10.0),
    "mpi-operator gives attempts": asks("-oConnectionAttempts=10 worker-0", attempts=10),
    "the first setting counts, and its name has no case":
        asks("-oconnecttimeout=1 -oCONNECTTIMEOUT=7 worker-0", connect_seconds=1.0),
    **{f"a connect timeout of {text} is ours": asks(f"-oConnectTimeout={text} worker-0")
       for text in ("none", "None", "0", "0s")},
    **{f"signs of life of {text} are switched off":
       asks(f"-oServerAliveInterval={text} -o ServerAliveCountMax=0 worker-0", alive_seconds=0.0, alive_count=0)
       for text in ("none", "0", "0s")},
    "signs of life":
        asks("-oServerAliveInterval=15 -o ServerAliveCountMax=3 worker-0", alive_seconds=15.0, alive_count=3),
    **{f"{words} declines stdin": asks(words, "cat", null_stdin=True)
       for words in ("-n worker-0", "-o StdinNull=yes worker-0", "worker-0 -n")},
    "a setting in one word declines stdin":
        (("-oStdinNull True", "worker-0", "cat"), Invocation("worker-0", ("cat",), null_stdin=True)),
    "no option after -- before the host": asks("-- worker-0", "-n", "cat"),
    "a second -- after one before the host is the command's": asks("-x -- worker-0", "--", "cat"),
    "no option after -- after the host": asks("worker-0 --", "-n", "cat"),
    "a second -- after the host is the command's": asks("worker-0 --", "--", "cat"),
    "a -- in the command is the command's": asks("worker-0", "cat", "--", "-n"),
    "variables can be sent and set":
        ((*("-o", "SendEnv=PSSH_NODENUM", "-o", "SendEnv LC_* -LC_ALL", "-o", "SetEnv=A=1 B=2"),
          *("-oSetEnv C=3", "worker-0", "true")),
         Invocation("worker-0", ("true",), send_env=("PSSH_NODENUM", "LC_* -LC_ALL"), set_env=("A=1 B=2", "C=3"))),
    **{f"{words} asks for a terminal in vain": asks(f"{words} worker-0", "top")
       for words in ("-tt", "-t", "-o RequestTTY=force", "-oRequestTTY=yes")},
    "a service is kept for looking the pod up":
        (("train-0.train.ml.svc", "true"), Invocation("train-0", ("true",), namespace="ml", service="train")),
    "an address": (("root@10.0.0.7", "true"), Invocation("10.0.0.7", ("true",), is_address=True)),
}
# fmt: on


class TestRsh:
    @pytest.mark.parametrize(("words", "expected"), INVOCATIONS.values(), ids=INVOCATIONS)
    def test_the_words_are_read_as_launchers_mean_them(self, words: tuple[str, ...], expected: Invocation) -> None:
        assert rsh(*words) == expected

    def test_a_dash_alone_ends_the_options(self) -> None:
        with pytest.raises(UsageError, match="'-' can't be a pod"):
            rsh("-", "true")

    @pytest.mark.parametrize(
        "words",
        [
            pytest.param(("--namespace", "ml", "worker-0", "true"), id="before the host"),
            pytest.param(("worker-0", "--namespace", "ml", "true"), id="after the host"),
            pytest.param(("--namespace=ml", "worker-0", "true"), id="in one word"),
            pytest.param(("--namespace=ml", "worker-0.train.other", "true"), id="whatever the host says"),
        ],
    )
    def test_the_namespace_can_be_given(self, words: tuple[str, ...]) -> None:
        found = rsh(*words)

        assert isinstance(found, Invocation)
        assert (found.pod, found.words, found.namespace) == ("worker-0", ("true",), "ml")

    @pytest.mark.parametrize("words", [("--help",), ("-h",), ("worker-0", "--help"), ("--help", "--version")])
    def test_help_can_be_wanted(self, words: tuple[str, ...]) -> None:
        assert rsh(*words) == Wants.HELP

    def test_the_version_can_be_wanted(self) -> None:
        assert rsh("--version") == Wants.VERSION

    @pytest.mark.parametrize("words", [("-V",), ("-V", "worker-0", "true")])
    def test_the_version_can_be_wanted_as_of_ssh(self, words: tuple[str, ...]) -> None:
        assert rsh(*words) == Wants.SSH_VERSION


class TestSsh:
    @pytest.mark.parametrize(
        "words",
        [
            pytest.param(("-x", "worker-0", "true"), id="Open MPI, under the name of ssh"),
            pytest.param(("-p", "2222", "-i", "/key", "worker-0", "true"), id="words before the host"),
            pytest.param(("worker-0", "-p", "2222", "-i", "/key", "true"), id="words after the host"),
            pytest.param(("-p2222", "-oBatchMode=yes", "worker-0", "true"), id="values in the same word"),
            pytest.param(("-2ax", "-qT", "worker-0", "true"), id="flags in one word"),
            pytest.param(("-qp", "2222", "worker-0", "true"), id="a value after flags in one word"),
            pytest.param(("--", "worker-0", "true"), id="an end of options before the host"),
            pytest.param(("worker-0", "--", "true"), id="an end of options after the host"),
            pytest.param(
                ("-o", "PasswordAuthentication=no", "-o", "StrictHostKeyChecking=no", "worker-0", "true"),
                id="Horovod",
            ),
            pytest.param(("-o", "UserKnownHostsFile /dev/null", "worker-0", "true"), id="a setting without ="),
            pytest.param(("-o", "ProxyJump=none", "worker-0", "true"), id="forwarding turned off"),
            pytest.param(("-o", "Tunnel=false", "worker-0", "true"), id="a tunnel turned off"),
            pytest.param(("-o", "StdinNull=no", "worker-0", "true"), id="stdin as it is"),
            pytest.param(("-o", "SessionType=default", "worker-0", "true"), id="a command as it is"),
            pytest.param(("-l", "mpi", "-o", "User=mpi", "mpi@worker-0", "true"), id="a user"),
        ],
    )
    def test_what_makes_no_sense_here_is_ignored(self, words: tuple[str, ...]) -> None:
        assert rsh(*words) == Invocation("worker-0", ("true",))

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("120", 120.0),
            ("10s", 10.0),
            ("10S", 10.0),
            ("1m", 60.0),
            ("1h30m", 5400.0),
            ("1m30", 90.0),
            ("0.5", 0.5),
            ("2.5s", 2.5),
            ("1d", 86400.0),
            pytest.param("3w", 604_800.0, id="a week at most"),
            pytest.param("9" * 500, 604_800.0, id="a number of any length"),
        ],
    )
    def test_a_time_is_written_as_for_ssh(self, text: str, seconds: float) -> None:
        found = rsh("-o", f"ConnectTimeout={text}", "-o", f"ServerAliveInterval {text}", "worker-0", "true")

        expected = Invocation("worker-0", ("true",), connect_seconds=seconds, alive_seconds=seconds)
        assert found == expected

    @pytest.mark.parametrize("program", ["ssh", "rsh", "/opt/shims/ssh"])
    def test_a_program_of_another_name_does_not_say_what_it_does(self, program: str) -> None:
        assert parse(program, ("-vvv", "worker-0", "true")) == Invocation("worker-0", ("true",))


class TestSubsystems:
    @pytest.mark.parametrize(
        "words",
        [
            pytest.param(("-x", "-oClearAllForwardings=yes", "-s", "--", "worker-0", "sftp"), id="sftp, scp"),
            pytest.param(("worker-0", "-s", "sftp"), id="after the host"),
            pytest.param(("-o", "SessionType=subsystem", "worker-0", "sftp"), id="as a setting"),
        ],
    )
    def test_sftp_runs_the_pods_server(self, words: tuple[str, ...]) -> None:
        assert rsh(*words) == Invocation("worker-0", (SFTP,))

    def test_there_is_no_other(self) -> None:
        with pytest.raises(UsageError) as caught:
            rsh("-s", "worker-0", "netconf")

        assert str(caught.value) == "no subsystem 'netconf' in worker-0; -s knows sftp only"


class TestSharedConnections:
    @pytest.mark.parametrize("words", [("-G",), ("-O", "check")])
    def test_questions_about_one_are_refused(self, words: tuple[str, ...]) -> None:
        with pytest.raises(UsageError) as caught:
            rsh(*words, "worker-0")

        expected = "can't be honoured: there is no ssh connection here to use or forward by"
        assert str(caught.value) == f"option {words[0]} {expected}"

    @pytest.mark.parametrize("words", [("-S", "/tmp/a"), ("-o", "ControlPath=/tmp/a"), ("-l", "a"), ("-p", "7")])
    def test_what_is_said_of_one_is_ignored(self, words: tuple[str, ...]) -> None:
        assert rsh(*words, "worker-0", "true") == Invocation("worker-0", ("true",))


class TestKubexec:
    def test_nothing_after_the_host_is_an_option(self) -> None:
        found = parse("/etc/mpi/kubexec.sh", ["worker-0", "-x", "true"])

        assert found == Invocation("worker-0", ("-x", "true"))

    @pytest.mark.parametrize("words", [("worker-0", "--", "true"), ("--", "worker-0", "--", "true")])
    def test_an_end_of_options_after_the_host_is_the_commands(self, words: tuple[str, ...]) -> None:
        assert parse("kubexec.sh", words) == Invocation("worker-0", ("--", "true"))

    def test_options_stand_before_the_host(self) -> None:
        words = ["-x", "-v", "-o", "ConnectTimeout=5m", "--container=main", "worker-0", "true"]

        expected = Invocation("worker-0", ("true",), connect_seconds=300.0, container="main")
        assert parse("kubexec.sh", words) == expected

    def test_help_can_be_wanted(self) -> None:
        assert parse("kubexec.sh", ["--help"]) == Wants.HELP

    def test_horovods_one_word_is_a_command(self) -> None:
        word = "cd /data > /dev/null 2>&1 ; env HOROVOD_RANK=1 python train.py"

        assert parse("kubexec.sh", ["worker-0", word]) == Invocation("worker-0", (word,))

    def test_without_words_there_is_no_host(self) -> None:
        with pytest.raises(UsageError, match="no host; the form is"):
            parse("kubexec.sh", [])


TIME = "expected a time such as 30, 10s or 1h30m"
NO_COMMAND = "no command for worker-0; write it after the host, as in: mpirt-rsh worker-0 hostname"
# fmt: off
MISTAKES: list[tuple[tuple[str, ...], str]] = [
    ((), "no host; the form is: mpirt-rsh [options] HOST COMMAND..."),
    (("worker-0",), NO_COMMAND),
    (("worker-0", " "), NO_COMMAND),
    (("-Z", "worker-0", "true"), "unknown option -Z in '-Z'; ssh's options are understood, see --help"),
    (("--verbose", "worker-0", "true"), ("unknown option '--verbose'; there are --namespace, --container, "
                                         "--context, --help, --version and --direct, and ssh's own")),
    (("--help=me",), "option --help takes no value"),
    (("--namespace",), "option --namespace needs a value, as in: --namespace VALUE"),
    (("--context=", "a", "b"), "option --context needs a value, as in: --context VALUE"),
    (("--namespace", "A", "a", "b"), f"--namespace 'A' can't be: a namespace's name {LABEL}"),
    (("--container=a/b", "a", "b"), f"--container 'a/b' can't be: a container's name {LABEL}"),
    (("-p",), "option -p needs a value, as in: -p VALUE"),
    (("-o", "worker-0"), "-o 'worker-0' is no setting; write it as -o NAME=VALUE"),
    (("-oConnectTimeout=soon", "a", "b"), f"-o ConnectTimeout=soon: {TIME}"),
    (("-oServerAliveInterval=1y", "a", "b"), f"-o ServerAliveInterval=1y: {TIME}"),
    (("-oConnectionAttempts=x", "a", "b"), "-o ConnectionAttempts=x: expected a number from 1 to 1000"),
    (("-oServerAliveCountMax=-1", "a", "b"), "-o ServerAliveCountMax=-1: expected a number from 0 to 1000000"),
    (("-oStdinNull=maybe", "a", "b"), "-o StdinNull=maybe: expected yes or no"),
]
# fmt: on


class TestMistakes:
    @promise(
        "A command line that can't be honoured is refused with 240, and the message names the option.",
        of="mpirt-rsh",
        no_cluster="nothing is contacted",
    )
    @pytest.mark.parametrize(("words", "message"), MISTAKES, ids=[message[:40] for _, message in MISTAKES])
    def test_a_mistake_is_named_with_its_remedy(self, words: tuple[str, ...], message: str) -> None:
        with pytest.raises(UsageError) as caught:
            rsh(*words)

        assert str(caught.value) == message

    @pytest.mark.parametrize(
        "text",
        ["", "s", "1x", "-1", "+1", "1s2s", "1s2", "1.5m", "1.", ".", "1..5", "1e3", "inf", "\u0661", "1 m"],
    )
    def test_what_is_no_time_for_ssh_is_none_here(self, text: str) -> None:
        assert read_time(text) is None

    @pytest.mark.parametrize("words", [("-J", "a"), ("-f",), ("-N",), ("-M",), ("-w", "0"), ("-Q", "key")])
    def test_what_cannot_be_honoured_is_refused(self, words: tuple[str, ...]) -> None:
        with pytest.raises(UsageError, match=f"option {words[0][:2]} can't be honoured"):
            rsh(*words, "worker-0", "true")

    @promise(
        "Forwarding is refused, and kubectl port-forward named in its place.",
        of="mpirt-rsh",
        no_cluster="nothing is contacted",
    )
    @pytest.mark.parametrize("words", [("-L", "80:a:80"), ("-R80:a:80",), ("-D", "80"), ("-W", "a:1")])
    def test_instead_of_forwarding_kubectl_is_named(self, words: tuple[str, ...]) -> None:
        with pytest.raises(UsageError) as caught:
            rsh(*words, "worker-0", "true")

        assert str(caught.value) == (
            f"option {words[0][:2]} can't be honoured: no ports are forwarded here; "
            "use: kubectl port-forward POD PORT"
        )

    @pytest.mark.parametrize("setting", ["LocalForward=80 a:80", "remoteforward=80", "DynamicForward 80"])
    def test_forwarding_by_a_setting_is_refused_likewise(self, setting: str) -> None:
        with pytest.raises(UsageError, match=r"can't be honoured: .* use: kubectl port-forward"):
            rsh("-o", setting, "worker-0", "true")

    @pytest.mark.parametrize(
        "setting",
        ["ProxyJump=a", "Tunnel=yes", "RemoteCommand=a", "SessionType=none", "ForkAfterAuthentication=yes"],
    )
    def test_settings_for_a_connection_of_ssh_are_refused(self, setting: str) -> None:
        with pytest.raises(UsageError, match="can't be honoured: there is no ssh connection here"):
            rsh("-o", setting, "worker-0", "true")


class TestHelp:
    def test_help_is_the_answer_to_help(self) -> None:
        assert reply(Wants.HELP, version="1.0") == Reply(stdout=HELP)

    @pytest.mark.parametrize(
        "word",
        [
            *("-n", "-s", "-v", "-h", "--namespace", "--container", "--context", "--version", "ConnectTimeout"),
            *("ServerAliveInterval", "SendEnv", "SetEnv", "MPIRT_SHELL", "MPIRT_CONTEXT", "JOB-INDEX"),
        ],
    )
    def test_help_names_what_can_be_said(self, word: str) -> None:
        assert word in HELP

    def test_help_fits_a_terminal(self) -> None:
        assert max(map(len, HELP.splitlines())) <= 112


class TestTheVersion:
    def test_the_version_goes_to_stdout(self) -> None:
        assert reply(Wants.VERSION, version="1.0") == Reply(stdout="mpirt-rsh 1.0\n")

    def test_the_version_goes_where_that_of_ssh_goes(self) -> None:
        assert reply(Wants.SSH_VERSION, version="1.0") == Reply(stderr="mpirt-rsh 1.0\n")

    def test_the_version_is_that_of_the_package(self) -> None:
        assert version() == importlib.metadata.version("mpirt")

    def test_a_package_that_is_not_installed_has_none(self) -> None:
        assert version("no-such-package") == ""
