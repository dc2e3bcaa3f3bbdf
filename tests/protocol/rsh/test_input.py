"""What is asked for wrongly, or leads to no cluster: one line, a code, and nothing is contacted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.protocol.rsh.agent import RSH, Agent, Ground, environment

HOST = "mpirt-rsh [options] HOST COMMAND..."
NO_SSH = "can't be honoured: there is no ssh connection here to use or forward by"
NO_PORTS = "can't be honoured: no ports are forwarded here; use: kubectl port-forward POD PORT"
NO_POD = "can't be a pod: a pod's name is of lower-case letters, digits and dashes"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param([], "no host", id="nothing"),
        pytest.param(["w-0"], "no command for w-0", id="no command"),
        pytest.param(["-Z", "w-0", "true"], "unknown option -Z", id="an unknown option"),
        pytest.param(["-L", "80:w-1:80", "w-0", "true"], f"option -L {NO_PORTS}", id="-L"),
        pytest.param(["-o", "ProxyJump=w-1", "w-0", "true"], f"-o ProxyJump {NO_SSH}", id="ProxyJump"),
        pytest.param(["-o", "ConnectTimeout=1\n2", "w-0", "true"], "expected a time", id="a time in two lines"),
        pytest.param(["wörker", "true"], NO_POD, id="a name that is not ASCII"),
        pytest.param(["-o", "SetEnv=A", "w-0", "true"], "expected NAME=VALUE", id="a variable without a value"),
    ],
)
def test_words_that_cannot_be_honoured_are_refused(ground: Ground, words: list[str], said: str) -> None:
    ended = ground.run(*words)

    assert said in ended.line
    assert (ended.code, ended.output, ground.server.connections) == (240, b"", 0)


@pytest.mark.parametrize("text", ["5", "V5", "v5.channel.k8s.io", "v3"])
def test_an_unknown_protocol_is_refused_with_those_that_are_known(ground: Ground, text: str) -> None:
    ended = ground.run("w-0", "true", env={"MPIRT_PROTOCOL": text})

    assert ended.line == f"MPIRT_PROTOCOL={text}: expected v4 or v5"
    assert (ended.code, ground.server.connections) == (240, 0)


def test_a_shell_that_is_no_path_is_refused(ground: Ground) -> None:
    ended = ground.run("w-0", "true", env={"MPIRT_SHELL": "bash"})

    assert ended.line == "'bash' can't be a shell: expected a path such as /bin/bash"
    assert (ended.code, ground.server.connections) == (240, 0)


@pytest.mark.parametrize("text", ["soon", "0", "604801", "9" * 5000, "\uff11"])
def test_a_time_that_is_none_is_refused(ground: Ground, text: str) -> None:
    ended = ground.run("w-0", "true", env={"MPIRT_CONNECT_TIMEOUT": text})

    assert ended.line.startswith(
        f"MPIRT_CONNECT_TIMEOUT={text[:20]}: expected a time such as 30, 10s or 1h30m, above 0"
    )
    assert (ended.code, ground.server.connections) == (240, 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("{", "not valid YAML", id="half of it"),
        pytest.param("just words", "kubeconfig", id="no kubeconfig"),
        pytest.param("", "no current-context", id="empty"),
        pytest.param("\x00\x01", "neither valid YAML nor JSON", id="binary"),
    ],
)
def test_a_kubeconfig_that_does_not_parse_is_named(ground: Ground, text: str, said: str) -> None:
    Path(ground.kubeconfig).write_text(text, encoding="utf-8")

    ended = ground.run("w-0", "true")

    assert said in ended.line
    assert (ended.code, ground.server.connections) == (241, 0)


def test_a_kubeconfig_without_credentials_is_named(ground: Ground) -> None:
    config = json.loads(Path(ground.kubeconfig).read_text(encoding="utf-8"))
    config["users"][0]["user"] = {}
    Path(ground.kubeconfig).write_text(json.dumps(config), encoding="utf-8")

    ended = ground.run("w-0", "true")

    assert "holds no credentials; expected one of token" in ended.line
    assert (ended.code, ground.server.connections) == (241, 0)


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        pytest.param({}, "no API server configured", id="nothing at all"),
        pytest.param({"KUBECONFIG": "/nowhere"}, "KUBECONFIG: no such file: /nowhere", id="no such file"),
        pytest.param(
            {"KUBERNETES_SERVICE_HOST": "127.0.0.1"}, "automountServiceAccountToken", id="a pod without a token"
        ),
    ],
)
def test_an_environment_that_leads_to_no_cluster_is_named(
    tmp_path: Path, environ: dict[str, str], said: str
) -> None:
    ended = Agent(["w-0", "true"], environment(tmp_path, environ)).wait()

    assert said in ended.line
    assert ended.code == 241


def test_help_and_version_need_no_cluster(tmp_path: Path) -> None:
    helped = Agent(["--help"], environment(tmp_path)).wait()
    told = Agent(["--version"], environment(tmp_path)).wait()

    assert (helped.code, helped.output[:31], helped.errors) == (0, b"Usage: " + HOST.encode()[:24], "")
    assert (told.code, told.output.split()[0], told.errors) == (0, b"mpirt-rsh", "")


@pytest.mark.parametrize("name", ["ssh", "kubexec.sh"])
def test_the_agent_works_under_other_names(ground: Ground, name: str) -> None:
    (ground.folder / name).symlink_to(RSH)
    words = ["-x", "w-0", "-p", "22", "echo", "$0"] if name == "ssh" else ["w-0", "echo", "-x"]

    ended = ground.start(*words, program=ground.folder / name).wait()

    assert (ended.code, ended.output) == (0, b"/bin/sh\n" if name == "ssh" else b"-x\n")
