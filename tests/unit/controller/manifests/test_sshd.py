"""Workers that were written for ssh: sshd is recognised however it is started, and probes that only it answers."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from typing import Any

import pytest

from mpirt.controller.manifests.sshd import IDLE, idle_command, starts_sshd, unanswered_probes
from mpirt.controller.manifests.workers import worker_template
from tests.unit.controller.jobs import SETTINGS, container, parsed, template

PROBE = {"tcpSocket": {"port": 2222}}


class TestHowSshdIsStarted:
    @pytest.mark.parametrize(
        "fields",
        [
            pytest.param({"command": ["/usr/sbin/sshd"], "args": ["-De"]}, id="in the command"),
            pytest.param(
                {"args": ["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"]}, id="in the args"
            ),
            pytest.param({"command": None, "args": ["sshd", "-D"]}, id="in the args beside a null command"),
            pytest.param({"command": ["/entrypoint.sh", "/usr/sbin/sshd", "-De"]}, id="behind an entrypoint"),
            pytest.param(
                {"command": ["tini", "-g", "--"], "args": ["/usr/sbin/sshd", "-De"]}, id="behind an init"
            ),
            pytest.param({"command": ["env", "A=b", "sshd", "-D"]}, id="behind env"),
            pytest.param({"command": ["/bin/sh", "-c", "/usr/sbin/sshd -De"]}, id="in a shell line"),
            pytest.param(
                {"command": ["/bin/bash", "-c"], "args": ["exec sshd -De;"]}, id="by exec in a shell line"
            ),
            pytest.param(
                {"args": ["bash", "-l", "-c", "sudo /usr/sbin/sshd -D 2>&1\n"]}, id="by sudo in a shell line"
            ),
            pytest.param({"command": ["bash", "-xec", "sshd -D \\\n -e"]}, id="in a line that is continued"),
        ],
    )
    def test_is_recognised(self, fields: dict[str, Any]) -> None:
        assert starts_sshd(container("worker", **fields))

    @pytest.mark.parametrize(
        "fields",
        [
            pytest.param({}, id="nothing to run"),
            pytest.param({"args": ["-De"]}, id="options alone"),
            pytest.param({"command": ["sleep", "infinity"]}, id="another program"),
            pytest.param({"command": ["cat", "/usr/sbin/sshd"]}, id="a program that is given its path"),
            pytest.param({"command": ["bash", "run-sshd.sh"]}, id="a script"),
            pytest.param({"command": ["bash", "-c"]}, id="a shell without a line"),
            pytest.param({"command": ["bash", "--rcfile", "x"]}, id="a shell with another option"),
            pytest.param({"command": ["sh", "-c", "/usr/sbin/sshd; serve"]}, id="a line that goes on after it"),
            pytest.param({"command": ["sh", "-c", "sshd -D &"]}, id="a line that leaves it in the background"),
            pytest.param({"command": ["sh", "-c", "(cd / && sshd -D)"]}, id="a subshell"),
            pytest.param({"command": ["sh", "-c", "sshd -o 'A"]}, id="a line with an open quote"),
            pytest.param({"command": ["sh", "-c", ""]}, id="an empty line"),
        ],
    )
    def test_is_not_taken_for_something_else(self, fields: dict[str, Any]) -> None:
        assert not starts_sshd(container("worker", **fields))


class TestWhatRunsInItsPlace:
    def test_a_container_that_is_all_sshd_waits(self) -> None:
        fields = {"args": ["/usr/sbin/sshd", "-De"]}

        assert idle_command(container("worker", **fields)) == {"command": list(IDLE), "args": []}

    def test_a_container_with_nothing_to_run_waits(self) -> None:
        assert idle_command(container("worker")) == {"command": list(IDLE), "args": []}

    def test_a_container_that_runs_something_else_is_left_alone(self) -> None:
        assert idle_command(container("worker", command=["serve"])) == {}

    @pytest.mark.parametrize(
        ("command", "args", "place"),
        [
            pytest.param(["/bin/sh", "-c", "{line}"], [], ("command", 2), id="in the command"),
            pytest.param(["/bin/sh", "-c"], ["{line}", "name"], ("args", 0), id="in the args"),
            pytest.param([], ["/bin/sh", "-c", "{line}"], ("args", 2), id="with the image's entrypoint"),
        ],
    )
    def test_what_a_shell_line_does_before_is_still_done(
        self, command: list[str], args: list[str], place: tuple[str, int]
    ) -> None:
        line = "echo prepared && exec /usr/sbin/sshd -De"
        given = {"command": [word.format(line=line) for word in command]}
        given["args"] = [word.format(line=line) for word in args]

        made = idle_command(container("worker", **given))

        field, number = place
        script = made[field][number]
        made[field][number] = line
        assert made == given
        shell = ["/bin/sh", "-c", script]
        waiting = subprocess.Popen(shell, stdout=subprocess.PIPE, text=True, start_new_session=True)
        with waiting:
            assert waiting.stdout is not None
            assert waiting.stdout.readline() == "prepared\n"
            waiting.terminate()
            # Whatever ends a worker, it has not succeeded.
            assert waiting.wait(timeout=60) in (143, -15)
            # The shell's own sleep ends with a container.
            with suppress(ProcessLookupError):
                os.killpg(waiting.pid, signal.SIGKILL)


class TestProbesThatOnlySshdAnswers:
    @pytest.mark.parametrize(
        ("fields", "asked"),
        [
            pytest.param({"args": ["sshd", "-f", "/x"], "readinessProbe": PROBE}, "port 2222", id="in a file"),
            pytest.param({"args": ["sshd", "-Dep", "2222"], "livenessProbe": PROBE}, "port 2222", id="-p"),
            pytest.param({"args": ["sshd", "-D", "-p2222"], "startupProbe": PROBE}, "port 2222", id="-p, joined"),
            pytest.param({"args": ["sshd", "-o", "Port=2222"], "readinessProbe": PROBE}, "port 2222", id="-o"),
            pytest.param({"args": ["sshd", "-oport 2222"], "readinessProbe": PROBE}, "port 2222", id="-o, joined"),
            pytest.param({"readinessProbe": PROBE}, "port 2222", id="where mpi-operator would start it"),
            pytest.param(
                {
                    "args": ["sshd", "-p", "2222"],
                    "ports": [{"name": "ssh", "containerPort": 2222}],
                    "readinessProbe": {"tcpSocket": {"port": "ssh"}},
                },
                "port ssh",
                id="a port by its name",
            ),
            pytest.param(
                {"args": ["sshd", "-p", "2222"], "readinessProbe": {"tcpSocket": {"port": "2222"}}},
                "port 2222",
                id="a number as text",
            ),
            pytest.param(
                {"args": ["sshd"], "livenessProbe": {"exec": {"command": ["pgrep", "-x", "sshd"]}}},
                "sshd",
                id="a program that looks for sshd",
            ),
            pytest.param(
                {"args": ["sshd", "-p", "2222"], "livenessProbe": {"exec": {"command": ["nc", "::1", "2222"]}}},
                "sshd",
                id="a program that asks its port",
            ),
        ],
    )  # fmt: skip
    def test_are_left_out(self, fields: dict[str, Any], asked: str) -> None:
        assert list(unanswered_probes(container("worker", **fields), []).values()) == [asked]

    @pytest.mark.parametrize(
        "fields",
        [
            pytest.param({"command": ["serve"], "readinessProbe": PROBE}, id="of another program"),
            pytest.param({"args": ["sshd", "-p", "22"], "readinessProbe": PROBE}, id="of another port"),
            pytest.param(
                {"args": ["sshd", "-o", "LogLevel=INFO", "-p", "22"], "readinessProbe": PROBE}, id="and -o"
            ),
            pytest.param({"args": ["sshd", "-p", "x", "-p", "22"], "readinessProbe": PROBE}, id="and a bad port"),
            pytest.param(
                {"args": ["sshd", "-p", "22"], "readinessProbe": {"tcpSocket": {"port": "web"}}},
                id="of a port of no such name",
            ),
            pytest.param(
                {"args": ["sshd", "-p", "22"], "readinessProbe": {"tcpSocket": {}}},
                id="of no port at all, which the API server refuses",
            ),
            pytest.param({"args": ["sshd"], "readinessProbe": {"httpGet": {"port": 80}}}, id="by HTTP"),
            pytest.param({"args": ["sshd"], "readinessProbe": "yes"}, id="that are none"),
            pytest.param({"args": ["sshd"], "readinessProbe": {"exec": {"command": 5}}}, id="by no program"),
            pytest.param(
                {"args": ["sshd", "-p", "2"], "readinessProbe": {"tcpSocket": {"port": "²"}}},
                id="of a name that looks like a number",
            ),
            pytest.param(
                {"args": ["sshd"], "readinessProbe": {"exec": {"command": ["test", "-f", "/ready"]}}},
                id="by a program of the user's",
            ),
        ],
    )
    def test_others_are_kept(self, fields: dict[str, Any]) -> None:
        assert unanswered_probes(container("worker", **fields), []) == {}

    def test_a_port_that_another_container_declares_is_not_sshds(self) -> None:
        beside = container("proxy", ports=[{"containerPort": 2222}])

        assert unanswered_probes(container("worker", args=["sshd"], readinessProbe=PROBE), [beside]) == {}

    def test_the_workers_pod_has_the_other_probes(self) -> None:
        kept = {"exec": {"command": ["true"]}}
        main = container("worker", args=["sshd", "-D"], readinessProbe=PROBE, livenessProbe=kept)

        [made] = worker_template(parsed(worker=template(main)), SETTINGS)["spec"]["containers"]

        assert ("readinessProbe" in made, made["livenessProbe"]) == (False, kept)
