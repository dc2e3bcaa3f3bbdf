"""The fleet, by which thousands of sessions are measured, tells the truth about each of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.kube.wait import until
from tests.apiserver.fleet import process
from tests.apiserver.fleet.keeper import PERIOD
from tests.apiserver.fleet.process import FleetProcess
from tests.protocol.switchboard.agents import Agent, Board, Command

RSH = Path(sys.executable).with_name("mpirt-rsh")
_PODS = 20
_FLOW = 3_000_000


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[FleetProcess]:
    with process.running(tmp_path / "fleet", _PODS) as found:
        yield found
        assert found.stats()["complaints"] == []


def _environ(fleet: FleetProcess) -> dict[str, str]:
    return {**os.environ, "KUBECONFIG": str(fleet.kubeconfig), "MPIRT_SWITCHBOARD": "off"}


def _run(fleet: FleetProcess, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [RSH, *words], env=_environ(fleet), stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
    )


def _until(fleet: FleetProcess, key: str, count: int) -> None:
    until(lambda: fleet.stats()[key] == count, within=30, what=f"{count} {key}", instead=fleet.stats)


def test_a_command_has_its_output_and_its_code(fleet: FleetProcess) -> None:
    ended = _run(fleet, "fleet-worker-0", "echo one; echo two words; exit 7")
    assert (ended.stdout, ended.stderr, ended.returncode) == (b"one\ntwo words\n", b"", 7)
    assert _run(fleet, f"fleet-worker-{_PODS - 1}", "true").returncode == 0


def test_all_bytes_of_a_flow_arrive(fleet: FleetProcess) -> None:
    pattern = bytes(range(PERIOD)) * (_FLOW // PERIOD + 1)
    assert _run(fleet, "fleet-worker-1", f"echo x; flow {_FLOW}").stdout == b"x\n" + pattern[:_FLOW]


def test_there_is_no_other_pod(fleet: FleetProcess) -> None:
    ended = _run(fleet, "fleet-worker-99", "true")
    assert ended.returncode != 0
    assert b"not found (404)" in ended.stderr


def test_another_process_attaches_to_a_command_and_a_signal_ends_it(fleet: FleetProcess, tmp_path: Path) -> None:
    board = Board(tmp_path / "board")
    agent = Agent(board.folder, Command(["fleet-worker-2", "hold"], _environ(fleet))).hand_over()
    agent.until(lambda command: command.output == b"up\n")
    board.kill()
    agent.drain()
    _until(fleet, "execs", 0)
    assert fleet.stats()["sessions"] == 1
    another = Board(tmp_path / "board")
    agent = Agent(another.folder, agent.command).hand_over()
    _until(fleet, "execs", 1)
    agent.signal(signal.SIGTERM)
    ended = agent.end()
    assert (bytes(ended.output), ended.code, ended.said) == (b"up\n", 128 + signal.SIGTERM, [])
    _until(fleet, "sessions", 0)
    another.kill()


def test_a_command_ends_with_its_pod(fleet: FleetProcess, tmp_path: Path) -> None:
    board = Board(tmp_path / "board")
    agent = Agent(board.folder, Command(["fleet-worker-3", "hold"], _environ(fleet))).hand_over()
    agent.until(lambda command: command.output == b"up\n")
    fleet.delete("fleet-worker-3")
    ended = agent.end()
    assert ended.code not in (None, 0)
    assert "fleet-worker-3" in "".join(ended.said)
    board.kill()


def test_a_watch_tells_what_happens_to_the_pods_that_it_is_about(fleet: FleetProcess) -> None:
    job = "labelSelector=training.kubeflow.org/job-name=fleet"
    with fleet.watching(job) as lines:
        added = [next(lines) for _ in range(_PODS)]
        assert {each["object"]["spec"]["nodeName"] for each in added} == {"node-0", "node-1"}
        newest = max(int(each["object"]["metadata"]["resourceVersion"]) for each in added)
        assert fleet.stats()["watches"] == 1
        fleet.modify("fleet-worker-4")
        fleet.delete("fleet-worker-5")
        seen = [next(lines) for _ in range(2)]
    assert [(each["type"], each["object"]["metadata"]["name"]) for each in seen] == [
        ("MODIFIED", "fleet-worker-4"),
        ("DELETED", "fleet-worker-5"),
    ]
    with fleet.watching(f"fieldSelector=metadata.name=fleet-worker-5&resourceVersion={newest}") as lines:
        assert next(lines) == seen[1]
    _until(fleet, "watches", 0)
