"""Credential plugins: what they are told, what they may answer, how long it holds, and every way they fail."""

from __future__ import annotations

import contextlib
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpirt.errors import ConfigError
from mpirt.kubeapi.access.credentials import Certificate, Credentials, PluginFailed, Secret
from mpirt.kubeapi.access.kubeconfig import from_kubeconfigs
from mpirt.kubeapi.access.plugin import PluginCredentials
from mpirt.kubeapi.access.steps import Deadline, Pending, run
from testbed.kube.wait import until
from tests.apiserver.processes import session_members
from tests.promises import promise
from tests.unit.kubeapi.plugins import ENVIRON, NOON, V1, V1BETA1, answer, config, source

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a plugin: a shell script."""

    def script(text: str) -> Path:
        path = tmp_path / "plugin"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return script


def ask(folder: Path, **fields: Any) -> Credentials:
    return run(source(folder, **fields).credentials(Deadline(20.0)))


def told(path: Path) -> Any:
    """What the plugin found in its environment."""
    return json.loads((path.parent / "told").read_text())


TELL = 'printf %s "$KUBERNETES_EXEC_INFO" > "${0%/*}/told"; '


class TestWhatItIsTold:
    def test_the_version_and_that_it_runs_without_a_terminal(self, write: Write) -> None:
        path = write(TELL + f"echo '{answer(V1BETA1)}'")

        ask(path.parent, apiVersion=V1BETA1)

        assert told(path) == {"apiVersion": V1BETA1, "kind": "ExecCredential", "spec": {"interactive": False}}

    def test_the_cluster_if_it_wants_to_know(self, write: Write) -> None:
        path = write(TELL + f"echo '{answer()}'")
        extensions = [
            {"name": "other", "extension": 1},
            {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me"}},
        ]
        cluster = {
            "server": "https://api.example:6443",
            "certificate-authority-data": "Q0E=",
            "tls-server-name": "kubernetes",
            "proxy-url": "http://proxy.example:3128",
        }
        user = {"exec": {"apiVersion": V1, "command": "./plugin", "provideClusterInfo": True}}
        made = config(cluster={**cluster, "extensions": extensions}, user=user)
        (path.parent / "config").write_text(yaml.safe_dump(made))

        run(from_kubeconfigs([str(path.parent / "config")], ENVIRON).source.credentials(Deadline(20.0)))

        known = {**cluster, "config": {"audience": "me"}}
        assert told(path)["spec"] == {"interactive": False, "cluster": known}

    def test_its_words_its_variables_and_ours(self, write: Write) -> None:
        path = write(
            'printf \'{"apiVersion":"%s","kind":"ExecCredential","status":{"token":"%s"}}\' "$1" "$2$A$HOME"'
        )

        found = ask(path.parent, args=[V1, "two-"], env=[{"name": "A", "value": "b"}])

        assert found.token == Secret("two-b/nowhere")

    def test_nothing_of_the_jobs_stdin(self, write: Write) -> None:
        path = write(f"read -r line && exit 9; echo '{answer()}'")

        assert ask(path.parent).token == Secret("t0ken")

    def test_a_bare_name_is_found_on_the_path(self, write: Write) -> None:
        path = write(f"echo '{answer()}'")

        found = ask(Path("/nowhere"), command="plugin", env=[{"name": "PATH", "value": f"{path.parent}:/bin"}])

        assert found.token == Secret("t0ken")


class TestWhatItAnswers:
    def test_a_certificate(self, write: Write) -> None:
        path = write(f"echo '{answer(clientCertificateData='CERT', clientKeyData='KEY')}'")

        found = ask(path.parent)

        where = "config: users[u].user.exec.command: the answer of the credential plugin ./plugin: "
        assert found == Credentials(
            None, Certificate("CERT", Secret("KEY"), f"{where}status.clientCertificateData")
        )

    def test_holds_until_it_says(self, write: Write) -> None:
        path = write(f"echo x >> ran; echo '{answer(token='t', expirationTimestamp='2026-01-01T01:00:00Z')}'")
        path.write_text(path.read_text().replace(">> ran", f">> {path.parent}/ran"))
        clock = [NOON]
        plugin = source(path.parent)._plugin  # noqa: SLF001  the clock is not part of a kubeconfig
        credentials = PluginCredentials(plugin, now=lambda: clock[0])

        runs = []
        for moment in (NOON, NOON + 3589, NOON + 3590, NOON + 3591):
            clock[0] = moment
            run(credentials.credentials(Deadline(20.0)))
            runs.append((path.parent / "ran").read_text().count("x"))

        assert runs == [1, 1, 2, 3]

    def test_holds_until_it_is_not_accepted(self, write: Write) -> None:
        path = write("")
        path.write_text(f"#!/bin/sh\necho x >> {path.parent}/ran; echo '{answer()}'\n")
        credentials = source(path.parent)

        run(credentials.credentials(Deadline(20.0)))
        first = run(credentials.credentials(Deadline(20.0)))
        for _ in range(2):
            credentials.renew(first)
        run(credentials.credentials(Deadline(20.0)))

        assert (path.parent / "ran").read_text() == "x\nx\n"


def ask_at_once(credentials: PluginCredentials, count: int) -> None:
    """So many commands that ask before the plugin has answered. A failure of one is not raised."""
    waiting = [Pending(credentials.credentials(Deadline(20.0))) for _ in range(count)]
    while waiting:
        still = []
        for pending in waiting:
            with contextlib.suppress(PluginFailed):
                still += [] if pending.advance() else [pending]
        waiting = still


class TestManyCommands:
    @promise(
        "Commands that need credentials at the same time run the credential plugin once for all.",
        of="mpirt-rsh",
        no_cluster="only a program of the same machine is run",
    )
    def test_of_a_launcher_run_the_plugin_once(self, write: Write) -> None:
        path = write(f"echo x >> \"${{0%/*}}/ran\"; sleep 0.2; echo '{answer()}'")
        credentials = source(path.parent)

        ask_at_once(credentials, 64)

        assert (path.parent / "ran").read_text() == "x\n"

    def test_that_were_rejected_with_the_same_token_run_it_once_more(self, write: Write) -> None:
        path = write(f"echo x >> \"${{0%/*}}/ran\"; echo '{answer(token='TOKEN')}' | sed s/TOKEN/$$/")
        credentials = source(path.parent)
        rejected = run(credentials.credentials(Deadline(20.0)))

        for _ in range(3):
            credentials.renew(rejected)
            run(credentials.credentials(Deadline(20.0)))

        assert (path.parent / "ran").read_text() == "x\nx\n"

    def test_do_not_share_a_failure(self, write: Write) -> None:
        path = write('echo x >> "${0%/*}/ran"; exit 9')

        ask_at_once(source(path.parent), 2)

        assert (path.parent / "ran").read_text() == 4 * "x\n"

    def test_that_wait_for_the_plugin_of_another_have_a_deadline(self, write: Write) -> None:
        credentials = source(write("sleep 1000").parent)
        running = Pending(credentials.credentials(Deadline(20.0)))
        running.advance()

        with pytest.raises(PluginFailed, match="is still running for another command after 0 s"):
            run(credentials.credentials(Deadline(0.0)))
        running.close()

    def test_that_stop_leave_no_program_behind(self, write: Write) -> None:
        path = write('echo $$ > "${0%/*}/pid"; sleep 1000 & wait')
        pid = path.parent / "pid"
        pending = Pending(source(path.parent).credentials(Deadline(20.0)))
        until(
            lambda: not pending.advance() and pid.exists() and pid.read_text(), within=20, what="the plugin to run"
        )
        session = int(pid.read_text())

        pending.close()

        until(lambda: session_members(session) == [], within=20, what="the plugin's session to be gone")


SAID = "config: users[u].user.exec.command: the credential plugin ./plugin"
ANSWER = "config: users[u].user.exec.command: the answer of the credential plugin ./plugin"


class TestFailures:
    @pytest.mark.parametrize(
        ("script", "said"),
        [
            pytest.param("exit 3", f"{SAID} failed with code 3", id="code"),
            pytest.param(
                "echo 'no session;' >&2; echo 'run: aws sso login' >&2; exit 255",
                f"{SAID} failed with code 255 (no session; run: aws sso login)",
                id="its own words",
            ),
            pytest.param("kill -9 $$", f"{SAID} failed with code -9", id="killed"),
            pytest.param("echo s3cret", f"{ANSWER} is not JSON", id="no JSON"),
            pytest.param("echo '[]'", f"{ANSWER}: expected named fields, got a list", id="a list"),
            pytest.param("echo '{}'", f"{ANSWER} is not an ExecCredential of {V1}", id="something else"),
            pytest.param(
                f"echo '{answer(V1BETA1)}'", f"{ANSWER} is not an ExecCredential of {V1}", id="another version"
            ),
        ],
    )
    def test_of_the_program(self, write: Write, script: str, said: str) -> None:
        path = write(script)

        with pytest.raises(ConfigError) as caught:
            ask(path.parent)

        assert str(caught.value) == said

    @pytest.mark.parametrize(
        ("status", "said"),
        [
            pytest.param({"other": 1}, ": holds neither a token nor a client certificate", id="nothing in it"),
            pytest.param({"clientCertificateData": "c"}, ".clientKeyData: is missing", id="no key"),
            pytest.param({"clientKeyData": "s3cret"}, ".clientCertificateData: is missing", id="no certificate"),
            ({"token": ["s3cret"]}, ".token: expected text, got a list; put it in quotes"),
            pytest.param(
                {"token": "s3cret", "expirationTimestamp": "tomorrow"},
                ".expirationTimestamp: is not a time as RFC 3339 has it",
                id="tomorrow",
            ),
            pytest.param(
                {"token": "s3cret", "expirationTimestamp": "2026-01-01T00:00:00"},
                ".expirationTimestamp: has no time zone",
                id="no zone",
            ),
        ],
    )
    def test_of_its_status(self, write: Write, status: dict[str, Any], said: str) -> None:
        path = write(f"echo '{answer(**status)}'")

        with pytest.raises(ConfigError) as caught:
            ask(path.parent)

        assert str(caught.value) == f"{ANSWER}: status{said}"

    def test_may_pass_at_the_second_time(self, write: Write) -> None:
        path = write(f"mkdir \"${{0%/*}}/tried\" && exit 1; echo '{answer()}'")

        assert ask(path.parent).token == Secret("t0ken")

    @pytest.mark.parametrize("script", ["exit 1", "exec sleep 1000"])
    def test_that_may_pass_has_a_type_of_its_own(self, write: Write, script: str) -> None:
        path = write(script)

        with pytest.raises(PluginFailed):
            run(source(path.parent).credentials(Deadline(1.0)))

    @pytest.mark.parametrize("mode", [0o644, None])
    def test_of_a_program_that_is_not_there_is_for_good(self, write: Write, mode: int | None) -> None:
        path = write("exit 0")
        path.unlink() if mode is None else path.chmod(mode)

        with pytest.raises(ConfigError, match="can't be run") as caught:
            ask(path.parent)
        assert not isinstance(caught.value, PluginFailed)

    def test_twice_is_enough(self, write: Write) -> None:
        path = write('echo x >> "${0%/*}/ran"; exit 1')

        with pytest.raises(ConfigError, match="failed with code 1"):
            ask(path.parent)

        assert (path.parent / "ran").read_text() == "x\nx\n"

    def test_of_a_flood_is_bounded(self, write: Write) -> None:
        with pytest.raises(ConfigError, match="printed more than 1048576 bytes"):
            ask(write("exec cat /dev/zero").parent)

    def test_that_never_ends_ends_with_the_deadline_and_leaves_nothing(self, write: Write) -> None:
        path = write("trap '' TERM; echo $$ > \"${0%/*}/pid\"; sleep 1000 & wait")

        with pytest.raises(ConfigError, match=r"did not answer within 2 s; run it by hand to see why"):
            run(source(path.parent).credentials(Deadline(2.0)))

        session = int((path.parent / "pid").read_text())
        # What was killed is gone a moment later.
        until(lambda: session_members(session) == [], within=20, what="the plugin's session to be gone")

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            pytest.param(
                {"command": "no-such-plugin", "installHint": "get it\nfrom example"},
                ".command: the credential plugin no-such-plugin can't be run: No such file or directory; "
                "get it from example",
                id="not there",
            ),
            pytest.param({"command": ""}, ".command: is missing or empty", id="no command"),
            pytest.param(
                {"apiVersion": "client.authentication.k8s.io/v1alpha1"},
                f".apiVersion: only {V1} and {V1BETA1} are supported",
                id="v1alpha1",
            ),
            pytest.param(
                {"interactiveMode": "Always"},
                ".interactiveMode: Always is not supported: the terminal belongs to the job; "
                "use another kind of credentials",
                id="interactive",
            ),
            pytest.param({"args": "x"}, ".args: expected a list, got text", id="args"),
            ({"args": [1]}, ".args[0]: expected text, got a number; put it in quotes"),
            pytest.param({"env": [{"value": "x"}]}, ".env[0].name: is missing or empty", id="env"),
            ({"provideClusterInfo": "yes"}, ".provideClusterInfo: expected true or false, got text"),
        ],
    )
    def test_of_the_kubeconfig(self, tmp_path: Path, fields: dict[str, Any], said: str) -> None:
        with pytest.raises(ConfigError) as caught:
            ask(tmp_path, **fields)

        assert str(caught.value) == f"config: users[u].user.exec{said}"
