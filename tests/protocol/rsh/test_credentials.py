"""A credential plugin in the way of a remote command: how long it may take, and what becomes of its failures."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pytest

from tests.protocol.rsh.agent import Ended, Ground

_V1 = "client.authentication.k8s.io/v1"
# One dial takes 15 s at most.
_LONGER_THAN_A_DIAL = 16


def with_plugin(ground: Ground, script: str, env: Mapping[str, str], *, command: str = "./plugin") -> Ended:
    """Run an agent whose credentials are a script's."""
    folder = ground.folder / "other"
    kubeconfig = ground.server.kubeconfig(folder, exec={"apiVersion": _V1, "command": command})
    plugin = folder / "plugin"
    plugin.write_text(f'#!/bin/sh\necho x >> "{folder}/ran"\n{script}\n')
    plugin.chmod(0o755)
    return ground.run("w-0", "printf out", env={"KUBECONFIG": str(kubeconfig), **env})


def answer(ground: Ground) -> str:
    said = {"apiVersion": _V1, "kind": "ExecCredential", "status": {"token": ground.server.token}}
    return f"echo '{json.dumps(said)}'"


def test_a_plugin_may_take_longer_than_a_dial(ground: Ground) -> None:
    ended = with_plugin(ground, f"sleep {_LONGER_THAN_A_DIAL}; {answer(ground)}", {"MPIRT_CONNECT_TIMEOUT": "60"})

    assert (ended.code, ended.output, ended.errors) == (0, b"out", "")


def test_a_plugin_has_the_time_that_the_user_gave_to_connect(ground: Ground) -> None:
    ended = with_plugin(ground, "exec sleep 1000", {"MPIRT_CONNECT_TIMEOUT": "2"})

    assert ended.code == 241
    said = re.search(r"the credential plugin \./plugin did not answer within (.+) s; run it by hand", ended.line)
    # A busy machine uses up some of the time before the plugin is started.
    assert said is not None and 1 < float(said[1]) <= 2, ended.line


def test_a_plugin_that_fails_is_run_again(ground: Ground) -> None:
    fails = f'[ $(wc -l < "{ground.folder}/other/ran") -gt 3 ] || exit 1'

    ended = with_plugin(ground, f"{fails}; {answer(ground)}", {})

    assert (ended.code, ended.output, ended.errors) == (0, b"out", "")


def test_a_plugin_that_goes_on_failing_is_told_at_the_end(ground: Ground) -> None:
    ended = with_plugin(ground, "echo no session >&2; exit 9", {"MPIRT_CONNECT_TIMEOUT": "2"})

    assert ended.code == 241
    assert "the credential plugin ./plugin failed with code 9 (no session)" in ended.line
    assert "gave up after" in ended.line


@pytest.mark.parametrize("command", ["./nothing", "nothing-on-the-path"])
def test_a_plugin_that_is_not_there_is_the_end_at_once(ground: Ground, command: str) -> None:
    ended = with_plugin(ground, "", {}, command=command)

    assert ended.code == 241
    assert f"the credential plugin {command} can't be run: No such file or directory" in ended.line
    assert "gave up" not in ended.line
