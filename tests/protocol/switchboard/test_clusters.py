"""Commands for different clusters, users and namespaces in one switchboard."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from testbed.kube.wait import until
from tests.apiserver.faults import Chunked, Then
from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer
from tests.apiserver.shell import End
from tests.protocol.podhub.crowds import JOB, commons
from tests.protocol.ps.launchers import Viewer
from tests.protocol.switchboard.agents import PATIENCE
from tests.protocol.switchboard.yard import Yard

_V1 = "client.authentication.k8s.io/v1"


def test_each_goes_where_its_environment_says(yard: Yard, elsewhere: ApiServer) -> None:
    elsewhere.world.put(pod("w-0"))
    yard.server.world.put(pod("w-0", namespace="other"))
    yard.begin()
    there = str(elsewhere.kubeconfig(yard.folder / "there"))
    here = [yard.live("exit 3") for _ in range(3)]
    others = [yard.live("exit 4", KUBECONFIG=there) for _ in range(3)]
    command = yard.command("exit 5")
    command.words = ["--namespace", "other", "w-0", "exit 5"]

    assert yard.hand_over(command).end().code == 5
    assert [life.end().code for life in here + others] == [3, 3, 3, 4, 4, 4]
    assert len(elsewhere.asked("exec")) == 3
    assert {request.words[3] for request in elsewhere.asked("exec")} == {"ml"}
    assert "other" in {request.words[3] for request in yard.server.asked("exec")}


def test_a_kubeconfig_that_is_replaced_is_read_anew(yard: Yard, elsewhere: ApiServer) -> None:
    elsewhere.world.put(pod("w-0"))
    yard.begin()
    assert yard.agent("exit 3").end().code == 3
    new = elsewhere.kubeconfig(yard.folder / "new")
    new.rename(yard.kubeconfig)

    assert yard.agent("exit 4").end().code == 4
    assert len(elsewhere.asked("exec")) == 1


def test_a_relative_kubeconfig_is_that_of_the_agents_folder(yard: Yard) -> None:
    yard.begin()
    # The folder that these agents hand over.
    relative = yard.kubeconfig.removeprefix("/")

    assert yard.agent("exit 3", KUBECONFIG=relative).end().code == 3


def test_a_broken_kubeconfig_has_its_code_and_line(yard: Yard) -> None:
    yard.begin()
    broken = yard.folder / "broken"
    broken.write_text("{")
    command = yard.agent("true", KUBECONFIG=str(broken)).end()

    assert command.code == 241
    assert str(broken) in command.said[0]
    assert yard.agent("exit 3").end().code == 3


def with_plugin(yard: Yard, name: str, script: str) -> str:
    """A kubeconfig in a folder of that name, with a plugin that gives the token if the script ends with 0."""
    folder = yard.folder / name
    answer = {"apiVersion": _V1, "kind": "ExecCredential", "status": {"token": yard.server.token}}
    kubeconfig = yard.server.kubeconfig(folder, exec={"apiVersion": _V1, "command": "./plugin"})
    plugin = folder / "plugin"
    plugin.write_text(f"#!/bin/sh\n{script} || exit 1\necho '{json.dumps(answer)}'\n")
    plugin.chmod(0o755)
    return str(kubeconfig)


def test_a_credential_plugin_that_takes_its_time_holds_up_nobody_else(yard: Yard) -> None:
    folder = yard.folder / "slow"
    kubeconfig = with_plugin(yard, "slow", f"touch {folder}/asked; until [ -e {folder}/go ]; do sleep 0.05; done")
    yard.begin()
    slow = [yard.live("exit 5", KUBECONFIG=kubeconfig) for _ in range(40)]
    yard.appears("slow/asked")
    assert yard.agent("exit 3").end().code == 3
    (folder / "go").touch()

    assert [life.end().code for life in slow] == [5] * 40


def test_a_plugin_of_one_agent_is_not_asked_for_another(yard: Yard) -> None:
    kubeconfig = with_plugin(yard, "plugin", '[ "$PROFILE" = good ]')
    yard.begin()
    settings = {"KUBECONFIG": kubeconfig, "MPIRT_CONNECT_TIMEOUT": "2"}

    assert yard.agent("exit 3", PROFILE="good", **settings).end().code == 3
    assert yard.agent("exit 3", PROFILE="bad", **settings).end().code == 241


def all_are_watched(yard: Yard, count: int) -> None:
    """Wait until the common watch has begun, with so many pods that are followed."""
    with closing(Viewer(yard.board.folder)) as viewer:
        until(
            lambda: [(one["state"], one["pods"]) for one in viewer.status()["watches"]] == [("watching", count)],
            within=PATIENCE,
            what=f"a watch on {count} pods",
            instead=viewer.status,
        )


def test_one_watch_is_enough_for_all_and_a_deleted_pod_ends_its_own_command(yard: Yard) -> None:
    count = 50
    yard.server.world.put(*(pod(f"n-{number}", labels=JOB) for number in range(count)))
    yard.begin()
    go = yard.folder / "go"
    script = f"echo begun; until [ -e {go} ]; do sleep 0.2; done; exit 3"
    lives = [yard.live(script, on=f"n-{number}") for number in range(count)]
    # Before a command has run for a second its pod is not followed; without followers a watch ends.
    all_are_watched(yard, count)
    yard.server.world.delete("n-7")
    assert lives[7].end().code == 246
    go.touch()

    assert [life.end().code for life in lives if life is not lives[7]] == [3] * (count - 1)
    assert commons(yard.server, "watch") == ["mpirt.dev/job=a"]


def test_a_command_in_a_pod_that_was_replaced_while_the_watch_was_dead_goes_on(yard: Yard) -> None:
    yard.server.world.put(*(pod(f"n-{number}", labels=JOB) for number in range(2)))
    yard.server.always("watch", Chunked((), Then.HANG))
    yard.begin()
    go = yard.folder / "go"
    script = f"echo begun; until [ -e {go} ]; do sleep 0.2; done; exit 3"
    first = yard.live(script, on="n-0")
    yard.server.wait_for("watch", 2)
    yard.server.world.delete("n-1")
    yard.server.world.put(pod("n-1", labels=JOB, uid="another"))
    second = yard.live(script, on="n-1")
    second.until(lambda command: command.output)
    lists = len(yard.server.asked("list"))
    yard.server.wait_for_session().end(End.RESET)
    yard.server.wait_for("list", lists + 1)
    yard.server.wait_for("watch", 3)
    go.touch()

    assert [life.end().code for life in (first, second)] == [3, 3]


# Only a switchboard writes a record, and with the right types: nobody looks at them again.
@pytest.mark.parametrize("field", [{"code": "x"}, {"nonce": 5}], ids=["at the beginning", "in the loop"])
def test_what_nobody_foresaw_ends_one_command_with_a_line(yard: Yard, field: dict[str, object]) -> None:
    yard.begin()
    other = yard.agent("read a; exit 4", has_stdin=True)
    other.until(lambda command: command.room > 0)
    command = yard.command("true")
    record = {"pod": "w-0", "nonce": "0123456789abcdef", "container": "", "container_start": 0, "is_held": True}
    command.kept = json.dumps({**record, "code": None, "line": "", **field}).encode()
    command.generation = 1

    ended = yard.hand_over(command).end()
    assert ended.code == 255
    assert "internal error" in ended.said[0]
    other.send_stdin(b"line\n")
    assert other.end().code == 4


def test_a_name_that_can_not_be_resolved_holds_up_nobody(yard: Yard) -> None:
    yard.begin()
    folder = yard.folder / "named"
    config = json.loads(yard.server.kubeconfig(folder).read_text())
    config["clusters"][0]["cluster"]["server"] = "https://nowhere.invalid:6443"
    (folder / "kubeconfig").write_text(json.dumps(config))
    lost = yard.agent("true", KUBECONFIG=str(folder / "kubeconfig"), MPIRT_CONNECT_TIMEOUT="3")

    assert yard.agent("exit 3").end().code == 3
    assert lost.end().code == 244


def test_a_pod_that_is_replaced_in_a_commands_first_second_was_deleted(yard: Yard) -> None:
    yard.begin()
    yard.agent("echo up; sleep 60").until(lambda command: command.output == b"up\n")
    # The second one comes when the watch has begun: no news of the pod is older than it.
    all_are_watched(yard, 1)
    agent = yard.agent("echo up; sleep 60")
    agent.until(lambda command: b"\n" in command.output)
    # The connection stands. If it ended at the same moment, its end might be heard of before the pod's.
    yard.server.world.put(pod("w-0", uid="another"))

    ended = agent.end()
    assert (ended.code, ended.said) == (246, ["pod w-0 was deleted, and another one has its name now"])
