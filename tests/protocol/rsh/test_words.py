"""What the words and the environment ask for reaches the pod; what is only asked about is answered."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import pytest

from tests.apiserver.pods import pod
from tests.protocol.rsh.agent import RSH, Ended, Ground


def as_program(ground: Ground, name: str, words: Sequence[str], env: Mapping[str, str]) -> Ended:
    """Run the agent under another name."""
    link = ground.folder / name
    link.symlink_to(RSH)
    return ground.start(*words, program=link, env=env).wait()


class TestVariables:
    def test_variables_are_set_for_the_command(self, ground: Ground) -> None:
        ended = ground.run("-o", 'SetEnv=A="x  y" B=$HOME', "w-0", 'printf "%s|%s" "$A" "$B"')

        assert (ended.code, ended.output, ended.errors) == (0, b"x  y|$HOME", "")

    def test_variables_are_sent_to_the_command_byte_by_byte(self, ground: Ground) -> None:
        value = os.fsdecode(b"\xff \xc3\xa4")
        ended = ground.run(
            "-o", "SendEnv=LC_A*", "w-0", 'printf %s "$LC_A$LC_B"', env={"LC_A": value, "LC_B": "b"}
        )

        assert (ended.code, ended.output, ended.errors) == (0, b"\xff \xc3\xa4", "")

    def test_variables_stand_in_no_url(self, ground: Ground) -> None:
        ground.run("-o", "SetEnv=SECRET=hunter2", "w-0", "true")

        [request] = ground.server.asked("exec")
        assert "hunter2" not in request.target
        assert "SECRET" not in request.target


class TestTheShell:
    def test_the_shell_may_be_another_one(self, ground: Ground) -> None:
        ended = ground.run("w-0", "[[ -n $BASH_VERSION ]] && echo $0", env={"MPIRT_SHELL": "/bin/bash"})

        assert (ended.code, ended.output, ended.errors) == (0, b"/bin/bash\n", "")


class TestSftp:
    def test_a_pod_without_a_server_says_so(self, ground: Ground) -> None:
        # As far as this machine has none; where it has one, it ends with its input.
        ended = ground.run("-s", "--", "w-0", "sftp")

        assert ended.code == 0 or (ended.code == 127 and "no sftp-server in this container" in ended.errors)


class TestOwnOptions:
    def test_a_namespace_may_be_given(self, ground: Ground) -> None:
        ground.server.world.put(pod("w-0", namespace="other"))

        ended = ground.run("--namespace", "other", "w-0.train.ml", "true")

        assert ended.code == 0
        assert "/namespaces/other/" in ground.server.asked("exec")[0].target

    def test_a_container_may_be_given(self, ground: Ground) -> None:
        ended = ground.run("--container=b", "w-0", "true", env={"MPIRT_CONTAINER": "a"})

        assert ended.code == 0
        assert ground.server.asked("exec")[0].query["container"] == "b"

    def test_a_context_that_is_not_there_is_named(self, ground: Ground) -> None:
        ended = ground.run("--context", "none", "w-0", "true")

        assert ended.code == 241
        assert 'no "none", which --context names' in ended.line

    def test_an_agent_says_what_happens_with_v(self, ground: Ground) -> None:
        ended = ground.run("-v", "w-0", "true")

        assert ended.code == 0
        assert "pod w-0 in namespace ml" in ended.lines[0]

    @pytest.mark.parametrize("name", ["ssh", "kubexec.sh"])
    def test_an_agent_under_another_name_is_quiet(self, ground: Ground, name: str) -> None:
        ended = as_program(ground, name, ["-v", "w-0", "true"], {})

        assert (ended.code, ended.errors) == (0, "")


class TestAddresses:
    def test_a_pod_may_be_called_by_its_address(self, ground: Ground) -> None:
        ground.server.world.put(pod("w-9", phase="Failed"))

        ended = ground.run("10.0.0.7", "printf out")

        assert (ended.code, ended.output, ended.errors) == (0, b"out", "")
        assert [name for name, _ in ground.server.requests] == ["list", "exec"]
        assert "/pods/w-0/exec" in ground.server.asked("exec")[0].target

    def test_an_address_that_nobody_has(self, ground: Ground) -> None:
        ended = ground.run("10.0.0.8", "true")

        assert (ended.code, ended.line) == (243, 'no pod in namespace "ml" has the address 10.0.0.8')


LABEL = "batch.kubernetes.io/job-name"
INDEX = "batch.kubernetes.io/job-completion-index"


class TestHostNames:
    def test_a_pod_of_an_indexed_job_is_found(self, ground: Ground) -> None:
        ground.server.world.put(pod("train-0-x7k2p", labels={LABEL: "train", INDEX: "0"}))

        ended = ground.run("train-0.train", "printf out")

        assert (ended.code, ended.output, ended.errors) == (0, b"out", "")
        assert [name for name, _ in ground.server.requests] == ["exec", "list", "exec"]
        assert "/pods/train-0-x7k2p/exec" in ground.server.asked("exec")[-1].target

    @pytest.mark.parametrize(("host", "name"), [("train-0", "train-0-x7k2p"), ("10.0.0.7", "w-0")])
    def test_the_pod_that_was_found_is_the_one_that_is_watched(self, ground: Ground, host: str, name: str) -> None:
        if host == "train-0":
            ground.server.world.put(pod(name, labels={LABEL: "train", INDEX: "0"}))

        agent = ground.start(host, "exec sleep 600")
        ground.server.wait_for("watch")
        ground.server.world.delete(name)

        ended = agent.wait()
        assert (ended.code, ended.line) == (246, f"host {host}: pod {name} was deleted")

    def test_a_host_name_that_nobody_has_is_looked_up_once(self, ground: Ground) -> None:
        ended = ground.run("-o", "ConnectionAttempts=3", "train-0", "true")

        assert ended.code == 243
        assert (
            'pods "train-0" not found; no pod in namespace "ml" has the host name train-0; gave up' in ended.line
        )
        assert len(ground.server.asked("exec")) == 3
        assert len(ground.server.asked("list")) == 2

    @pytest.mark.parametrize("host", ["train-0", "10.0.0.7"])
    def test_a_host_name_without_the_right_to_list_names_it(self, ground: Ground, host: str) -> None:
        ground.server.rules = frozenset({("get", "pods/exec"), ("create", "pods/exec")})

        ended = ground.run("-o", "ConnectionAttempts=1", host, "true")

        assert ended.code == 243
        assert f"{host} can't be looked up" in ended.line
        assert "must hold list on pods" in ended.line

    def test_a_host_name_that_several_pods_have(self, ground: Ground) -> None:
        for name in ("train-0-a", "train-0-b"):
            ground.server.world.put(pod(name, labels={LABEL: "train", INDEX: "0"}))

        ended = ground.run("train-0", "true")

        assert (ended.code, len(ground.server.asked("exec"))) == (243, 1)
        assert ended.line == "host train-0 may be any of the pods train-0-a, train-0-b; name the pod that is meant"
