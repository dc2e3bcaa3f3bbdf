"""
With which versions mpirt was tested: docs/compatibility.md, and the data that it is made of.

Owns: what is kept of a run, and the page. Reads and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from testbed.kube.errors import ClusterError
from testbed.kube.programs.modules import parse_version

_HEAD = """\
# Compatibility

Each row is the last green run of `make test-full` with that version, on Debian 12 with two nodes. `mpirt-rsh`
speaks v4 of the exec protocol, and v5 where v4 is refused or `MPIRT_PROTOCOL=v5` asks for it. After a run,
`.venv/bin/python -m testbed.kube record --kubernetes MINOR` writes this page.

| Kubernetes | containerd | etcd | runc | tests | on |
|---|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class GreenRun:
    """A green run of the tests with one version of Kubernetes. `tests` are their numbers by stage."""

    kubernetes: str
    containerd: str
    etcd: str
    runc: str
    tests: Mapping[str, int]
    on: str


def green_run(summary: Mapping[str, Any], versions: Mapping[str, str], today: date) -> GreenRun:
    """What is kept of a run, by the summary that tests/run has written; a red one is refused."""
    if summary["red"]:
        raise ClusterError("the last run was red", remedy="mend it, run make test-full, and record that run")
    return GreenRun(
        kubernetes=versions["kubernetes"],
        containerd=versions["containerd"],
        etcd=versions["etcd"],
        runc=versions["runc"],
        tests={stage["name"]: stage["tests"] for stage in summary["stages"] if stage["tests"]},
        on=today.isoformat(),
    )


def with_run(known: Iterable[GreenRun], fresh: GreenRun) -> list[GreenRun]:
    """All that is known with a run more, the newest version first. Of a minor version the last run counts."""
    others = [one for one in known if _minor(one) != _minor(fresh)]
    return sorted([*others, fresh], key=lambda one: parse_version(one.kubernetes), reverse=True)


def page(runs: Sequence[GreenRun]) -> str:
    """The text of docs/compatibility.md."""
    return _HEAD + "".join(_row(run) for run in runs)


def as_data(runs: Sequence[GreenRun]) -> list[dict[str, Any]]:
    """What is kept as JSON beside the page."""
    return [asdict(run) for run in runs]


def from_data(rows: Iterable[Mapping[str, Any]]) -> list[GreenRun]:
    """The same, read back."""
    return [GreenRun(**row) for row in rows]


def _row(run: GreenRun) -> str:
    tests = ", ".join(f"{number} in {stage}" for stage, number in run.tests.items())
    return f"| {run.kubernetes} | {run.containerd} | {run.etcd} | {run.runc} | {tests} | {run.on} |\n"


def _minor(run: GreenRun) -> tuple[int, ...]:
    return parse_version(run.kubernetes)[:2]
