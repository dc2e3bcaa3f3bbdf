"""A private switchboard, of which the agent and its substitute start one for a command, and with which it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpirt.errors import ExitCode
from testbed.kube.wait import until
from tests.protocol.rsh.agent import PATIENCE, RSH, Agent, Ground
from tests.support.switchboards import PRIVATE, SWITCHBOARD

_SUBSTITUTE = "from mpirt.rsh.substitute import run; import sys; sys.exit(run('mpirt-rsh', sys.argv[1:]))"
# A line each second.
_TICKS = "n=0; while [ $n -lt 4 ]; do n=$((n + 1)); echo $n; sleep 1; done; exit 7"


@pytest.fixture
def substitute(ground: Ground) -> Path:
    """What stands in for the agent where that can't be executed."""
    made = ground.folder / "substitute"
    made.write_text(f"#!{sys.executable}\n{_SUBSTITUTE}\n")
    made.chmod(0o755)
    return made


@pytest.fixture(params=[False, True], ids=["agent", "substitute"])
def program(request: pytest.FixtureRequest, substitute: Path) -> Path:
    """Either of them."""
    return substitute if request.param else RSH


def start(ground: Ground, program: Path, *words: str, env: Mapping[str, str] | None = None) -> Agent:
    settings = {SWITCHBOARD: PRIVATE, "MPIRT_KEEPER": "on", **(env or {})}
    return ground.start(*words, stdin=subprocess.PIPE, program=program, env=settings)


def switchboard_of(ground: Ground, agent: Agent) -> int:
    """The process id of the agent's private switchboard; 0 if there is none."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        is_ours = {b"MPIRT_SWITCHBOARD=off", b"HOME=" + os.fsencode(ground.folder)} <= set(variables)
        if is_ours and int(folder.name) != agent.process.pid:
            return int(folder.name)
    return 0


class TestACommand:
    def test_a_command_has_its_streams_and_its_code(self, ground: Ground, program: Path) -> None:
        data = os.urandom(1 << 20)

        ended = start(ground, program, "w-0", "echo no >&2; cat; exit 5").wait(data)

        assert (ended.code, ended.output, ended.errors) == (5, data, "no\n")

    def test_a_command_that_no_stdin_is_given_to_sees_its_end(self, ground: Ground, program: Path) -> None:
        ended = start(ground, program, "-n", "w-0", "cat; echo end").wait(b"unread")

        assert (ended.code, ended.output) == (0, b"end\n")

    def test_a_command_that_can_not_begin_has_a_line_and_a_code(self, ground: Ground, program: Path) -> None:
        ended = start(ground, program, "w-9", "true", env={"MPIRT_CONNECT_TIMEOUT": "1"}).wait()

        assert ended.code == ExitCode.NO_POD
        assert "w-9" in ended.line

    def test_a_command_is_found_by_a_kubeconfig_that_is_relative_to_its_folder(
        self, ground: Ground, program: Path
    ) -> None:
        relative = Path(ground.kubeconfig).name
        words = ["sh", "-c", 'cd "$0" && exec "$@"', str(Path(ground.kubeconfig).parent)]
        agent = ground.start(
            "w-0", "exit 3", program=program, before=words, env={"KUBECONFIG": relative, SWITCHBOARD: PRIVATE}
        )

        assert agent.wait().code == 3

    def test_a_command_ends_by_a_signal(self, ground: Ground, program: Path) -> None:
        agent = start(ground, program, "w-0", "echo runs; sleep 600 & sleep 600")
        running = ground.server.wait_for_session()
        agent.line()

        agent.process.terminate()

        assert agent.wait().code == 128 + signal.SIGTERM
        assert running.finished.wait(PATIENCE)

    def test_a_command_ends_with_its_agent(self, ground: Ground, program: Path) -> None:
        agent = start(ground, program, "w-0", "echo runs; sleep 600 & sleep 600")
        running = ground.server.wait_for_session()
        agent.line()
        assert switchboard_of(ground, agent)

        agent.process.kill()

        assert running.finished.wait(PATIENCE)
        until(lambda: not switchboard_of(ground, agent), within=PATIENCE, what="the switchboard's end")

    def test_a_command_whose_output_is_not_read_any_more_ends_as_by_sigpipe(
        self, ground: Ground, program: Path
    ) -> None:
        agent = start(ground, program, "w-0", "echo runs; while echo more; do sleep 0.1; done")
        agent.line()
        assert agent.process.stdout is not None

        agent.process.stdout.close()

        assert agent.process.wait(PATIENCE) == 128 + signal.SIGPIPE


def test_help_needs_no_cluster(ground: Ground, program: Path) -> None:
    ended = start(ground, program, "--help", env={"KUBECONFIG": "/nowhere"}).wait()

    assert (ended.code, ended.output[:16], ended.errors) == (0, b"Usage: mpirt-rsh", "")


class TestAPrivateSwitchboardThatIsKilled:
    def test_a_killed_switchboard_is_followed_by_another_one_and_each_byte_arrives_once(
        self, ground: Ground
    ) -> None:
        agent = start(ground, RSH, "w-0", _TICKS)
        assert agent.line() == b"1\n"

        first = switchboard_of(ground, agent)
        os.kill(first, signal.SIGKILL)
        assert agent.line() == b"2\n"
        second = switchboard_of(ground, agent)

        ended = agent.wait()
        assert (ended.code, ended.output, ended.errors) == (7, b"3\n4\n", "")
        assert second not in (0, first)

    def test_a_killed_switchboard_ends_the_command_of_a_substitute_with_a_line(
        self, ground: Ground, substitute: Path
    ) -> None:
        agent = start(ground, substitute, "w-0", _TICKS)
        assert agent.line() == b"1\n"

        os.kill(switchboard_of(ground, agent), signal.SIGKILL)

        ended = agent.wait()
        assert (ended.code, ended.line) == (250, "the switchboard of this command has ended")
