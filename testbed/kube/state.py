"""
What is written down about the cluster that is, or was half, on this machine.

It is written before the first thing is made and says `running` only after the last, so whatever a killed run left
is recognised by it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from testbed.kube import daemons, layout, paths
from testbed.kube.errors import ClusterError
from testbed.kube.layout import Node

_FILE = paths.STATE / "cluster.json"


@dataclass(frozen=True)
class State:
    """`key` is that of the recipe, `kubernetes` a minor version, `forwarding` the host's setting before."""

    key: str
    kubernetes: str
    nodes: int
    phase: str
    forwarding: str

    @property
    def members(self) -> list[Node]:
        return layout.nodes(self.nodes)

    @property
    def is_running(self) -> bool:
        return self.phase == "running"


def read() -> State | None:
    return _read(_FILE)


def of_the_first() -> State | None:
    """That of the machine's first cluster, which may be this one."""
    return _read(paths.STATES[0] / _FILE.name)


def is_another_there() -> bool:
    """Whether another cluster is, or was half, on this machine."""
    return any((folder / _FILE.name).exists() for folder in paths.STATES if folder != paths.STATE)


def _read(file: Path) -> State | None:
    try:
        return State(**json.loads(file.read_text()))
    except (FileNotFoundError, json.JSONDecodeError, TypeError):
        return None


def write(state: State) -> None:
    paths.STATE.mkdir(parents=True, exist_ok=True)
    _FILE.write_text(json.dumps(asdict(state)) + "\n")


def forget() -> None:
    _FILE.unlink(missing_ok=True)


def running() -> State:
    """The state of the running cluster; raises when there is none."""
    present = read()
    if present is None or not present.is_running or daemons.pid_of(present.members[0].holder) is None:
        raise ClusterError("no cluster is running", remedy="start one: make cluster")
    return present
