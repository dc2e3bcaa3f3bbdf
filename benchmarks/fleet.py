"""
Commands and discovery beside kubectl, and many sessions alone on a loopback server.

Owns: what is run on either side, and the bounds. The worker is one of a job: it has the keeper where the
controller mounts it.

A cluster's nodes take no thousands of execs on one machine, so larger numbers are measured against
tests.apiserver.fleet: that shows what this side costs, not how long a cluster would take.
"""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click

from benchmarks import held
from benchmarks.agents import agent, discover, switchboard_folder
from benchmarks.frame import Report, Row, Unmeasured, command, compared, in_turn
from benchmarks.place import ACCESS, environment, fresh_namespace, plain_environment
from benchmarks.plot import Panel, svg
from benchmarks.programs import MIB, Cost, cpu_seconds, crowd, run
from testbed.ground import Namespace
from testbed.kube.progress import step
from testbed.kube.shell import output
from testbed.kube.wait import until
from tests.apiserver.fleet import process
from tests.apiserver.fleet.process import FleetProcess
from tests.e2e.rsh import jobworkers
from tests.support.switchboards import SWITCHBOARD, pid_of

_OURS, _THEIRS = "mpirt", "kubectl"
_BOUNDS = {
    "launch_ratio_64": 0.40,
    "memory_ratio_64": 0.04,
    "cpu_ratio_64": 0.07,
    "up_1000_s": 2.5,
    "memory_1000_mb": 180,
    "oneshot_wall_ratio": 0.55,
    "oneshot_cpu_ratio": 0.12,
    "first_wall_ratio": 1.25,
    "stdout_ratio": 1.3,
    "stdin_ratio": 1.3,
    "discover_wall_ratio": 0.15,
    "discover_alone_wall_ratio": 0.75,
}
_WORKERS = 3
_SELECTOR = ("--selector", "training.kubeflow.org/job-name=job")
_NAMES = 'jsonpath={range .items[*]}{.metadata.name}{"\\n"}{end}'

_WATCHED_WITHIN = 60.0
_SETTLED_AFTER = 5.0
_SETTLED_WITHIN = 180.0
# The switchboard has an agent, an exec and at most a watch for each session; the rest is its own.
_DESCRIPTORS, _MORE_DESCRIPTORS = 3, 100

# dd counts whole mebibytes that it has put together. The shell waits for it, because containerd ends an exec's
# stdin as soon as the exec's first process has no stdout any more.
_SINK = "dd ibs=65536 obs=1048576 of=/dev/null 2>&1 | grep -q '^{}+0 records out'; exit $?"
_SOURCE = "exec dd if=/dev/zero bs=1048576 count={} 2>/dev/null"


def _counts(_context: click.Context, _parameter: click.Parameter, text: str) -> list[int]:
    words = {word.strip() for word in text.split(",") if word.strip()}
    if not all(word.isdecimal() and int(word) for word in words):
        raise click.BadParameter(f"expected numbers such as 1,16,64, got {text!r}")
    return sorted(map(int, words))


@command(
    click.option("--sizes", default="1,16,64", show_default=True, callback=_counts,
                 help="Sessions held at once by each, on the cluster; '' for nothing that needs a cluster."),
    click.option("--alone", default="1000,5000", show_default=True, callback=_counts,
                 help="Sessions of mpirt-rsh on the loopback server; '' for none."),
    click.option("--idle", type=click.FloatRange(1), default=30, show_default=True,
                 help="Seconds for which nothing happens to them."),
    click.option("--rounds", type=click.IntRange(1), default=3, show_default=True,
                 help="Pairs of each size, and of streams in each direction."),
    click.option("--runs", type=click.IntRange(1), default=30, show_default=True, help="Pairs of short programs."),
    click.option("--mebibytes", type=click.IntRange(1), default=1024, show_default=True, help="In each stream."),
    click.option("--plot", type=click.Path(dir_okay=False, writable=True, path_type=Path),
                 help="Draw memory and launch time over the number of sessions into this SVG."),
    ACCESS,
)  # fmt: skip
def fleet(
    *,
    sizes: list[int],
    alone: list[int],
    idle: float,
    rounds: int,
    runs: int,
    mebibytes: int,
    plot: Path | None,
    access: str,
) -> Report:
    """
    mpirt-rsh beside kubectl exec, mpirt-discover beside kubectl get.

    Many sessions at once with one switchboard for all of them, short commands with a running switchboard, a first
    command that starts one, streams, discovery through a switchboard and without; and thousands of sessions on a
    loopback API server, where there is nothing beside them.
    """
    rows: list[Row] = []
    notes = [f"{rounds} rounds, {runs} pairs, streams of {mebibytes} MiB; access as {access}"]
    if sizes:
        with _contest(access) as contest:
            notes.append(contest.versions())
            rows += [row for size in sizes for row in contest.held(size, rounds)]
            rows += [*contest.short(runs), *contest.first(runs), *contest.streams(rounds, mebibytes)]
            rows += contest.discovery(runs)
    for count in alone:
        found, errors = _alone(count, idle)
        rows += found
        notes += [f"{count}: {line}" for line in errors]
    if plot is not None:
        plot.write_text(svg(_panels(rows, sizes, alone), across="sessions at once"), encoding="utf-8")
    return compared(rows, ours=_OURS, theirs=_THEIRS, notes=notes, bounds=_BOUNDS)


@contextmanager
def _contest(access: str) -> Iterator[_Contest]:
    with fresh_namespace() as namespace:
        with step(f"{_WORKERS} workers"):
            [pod, *_] = jobworkers.start(namespace, _WORKERS, "busybox")
        with environment(access, namespace, pod) as env:
            yield _Contest(namespace, pod, env)


@dataclass(frozen=True, slots=True)
class _Contest:
    """Both sides, ready to run commands in the same pod, or to list the same pods, with the same access."""

    namespace: Namespace
    pod: str
    env: dict[str, str]

    def versions(self) -> str:
        kubectl = ", ".join(self.namespace.kubectl("version").stdout.splitlines())
        return f"{output(*discover('--version')).strip()} against kubectl: {kubectl}"

    def held(self, count: int, rounds: int) -> list[Row]:
        """So many sessions at once."""
        return held.beside(self.pod, self._exec(held.HOLD), self.env, count, rounds)

    def short(self, runs: int) -> list[Row]:
        """`true`, one after the other, with a switchboard that runs."""
        argv, theirs = agent(self.pod, "true"), self._exec("true")
        with step(f"{runs} pairs of `true`"), switchboard_folder() as board:
            env = {**self.env, SWITCHBOARD: str(board)}
            run(argv, env=env)
            before = cpu_seconds(pid_of(board))
            pair = in_turn(runs, lambda: run(argv, env=env), lambda: run(theirs, env=self.env))
            share = (cpu_seconds(pid_of(board)) - before) / runs
        return _costs("oneshot", "`true`", *pair, share=share)

    def first(self, runs: int) -> list[Row]:
        """`true`, with a switchboard that it starts itself."""

        def ours() -> Cost:
            with switchboard_folder() as board:
                return run(agent(self.pod, "true"), env={**self.env, SWITCHBOARD: str(board)})

        with step(f"{runs} pairs of first commands"):
            pair = in_turn(runs, ours, lambda: run(self._exec("true"), env=self.env), warm_up=True)
        # Its CPU time is no figure: most of it is the switchboard's, which goes on.
        return _costs("first", "`true` that starts the switchboard", *pair)[:1]

    def streams(self, rounds: int, mebibytes: int) -> list[Row]:
        """So many bytes out of the worker, and into it."""
        source, sink = _SOURCE.format(mebibytes), _SINK.format(mebibytes)

        def out(argv: Sequence[str], env: Mapping[str, str]) -> float:
            cost = run(argv, env=env)
            if cost.bytes != mebibytes * MIB:
                raise Unmeasured(f"{cost.bytes} of {mebibytes * MIB} bytes came through {argv[0]}")
            return cost.wall_seconds

        def into(argv: Sequence[str], env: Mapping[str, str]) -> float:
            return run(argv, env=env, feed=mebibytes).wall_seconds

        with step(f"{rounds} pairs of {mebibytes} MiB each way"), switchboard_folder() as board:
            env = {**self.env, SWITCHBOARD: str(board)}
            received = in_turn(
                rounds, lambda: out(agent(self.pod, source), env), lambda: out(self._exec(source), self.env)
            )
            sent = in_turn(
                rounds, lambda: into(agent(self.pod, sink), env), lambda: into(self._exec(sink, "-i"), self.env)
            )
        what = f"{mebibytes} MiB, s"
        return [Row("stdout_ratio", f"stdout: {what}", *received), Row("stdin_ratio", f"stdin: {what}", *sent)]

    def discovery(self, runs: int) -> list[Row]:
        """The names of the three workers: from a switchboard that watches them, and from the API server."""
        ours = discover(*_SELECTOR)
        theirs = [str(self.namespace.kubectl.program), "get", "pods", *_SELECTOR, "--output", _NAMES]

        def measured(key: str, what: str, board: str) -> list[Row]:
            env = {**self.env, SWITCHBOARD: board}
            with step(f"{runs} pairs of {what}"):
                pair = in_turn(runs, lambda: run(ours, env=env), lambda: run(theirs, env=self.env), warm_up=True)
            return _costs(key, what, *pair)

        def is_watched() -> bool:
            asked = [*ours, "--verbose"]
            found = subprocess.run(asked, env=env, check=True, capture_output=True, text=True)
            return "from the switchboard" in found.stderr

        with switchboard_folder() as board:
            env = {**self.env, SWITCHBOARD: str(board)}
            with crowd([agent(self.pod, held.HOLD)], env=env, sign=held.UP):
                until(is_watched, within=_WATCHED_WITHIN, what="a switchboard that watches the job's pods")
                found = measured("discover", "3 hosts through a switchboard", str(board))
        return [*found, *measured("discover_alone", "3 hosts without a switchboard", "off")]

    def _exec(self, command: str, *options: str) -> list[str]:
        """As the kubexec.sh of kubectl-delivery has it."""
        kubectl = str(self.namespace.kubectl.program)
        return [kubectl, "exec", *options, self.pod, "--", "/bin/sh", "-c", command]


def _costs(key: str, what: str, ours: list[Cost], theirs: list[Cost], *, share: float = 0) -> list[Row]:
    """Wall and CPU time; `share` is what a run costs the switchboard."""
    wall = ([cost.wall_seconds * 1000 for cost in side] for side in (ours, theirs))
    cpu = ([(cost.cpu_seconds + more) * 1000 for cost in side] for side, more in ((ours, share), (theirs, 0)))
    return [
        Row(f"{key}_wall_ratio", f"{what}: wall time, ms", *wall),
        Row(f"{key}_cpu_ratio", f"{what}: CPU time, ms", *cpu),
    ]


def _alone(count: int, idle_seconds: float) -> tuple[list[Row], list[str]]:
    """So many sessions on the loopback server, and what went wrong."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < (wanted := count * _DESCRIPTORS + _MORE_DESCRIPTORS):
        return [], [f"not measured: this takes {wanted} descriptors; the limit is {most}"]
    with step(f"{count} sessions on the loopback server"), switchboard_folder() as board:
        with process.running(board / "fleet", count) as server:
            stats: dict[str, Any] = {}

            def settled(pid: int) -> None:
                _settle(server)
                before, began = cpu_seconds(pid), time.monotonic()
                time.sleep(idle_seconds)
                stats["idle"] = 100 * (cpu_seconds(pid) - before) / (time.monotonic() - began)
                stats.update(server.stats())

            env = {**plain_environment(), "KUBECONFIG": str(server.kubeconfig)}
            argvs = [agent(f"fleet-worker-{number}", "hold") for number in range(count)]
            found = held.by_agents(argvs, env, board, settled)
            errors = [*server.stats()["complaints"], *found.messages]
        log = board / "log"
        errors += log.read_text(errors="replace").splitlines() if log.exists() else []
    values: dict[str, tuple[str, float]] = {
        f"up_{count}_s": ("until the last is up, s", found.up_seconds),
        f"memory_{count}_mb": ("memory of all, MB", found.megabytes),
        f"cpu_{count}_s": ("CPU until all are up, s", found.cpu_seconds),
        f"idle_{count}_percent": ("CPU when idle, %", stats["idle"]),
        f"watches_{count}": ("watches", stats["watches"]),
        f"errors_{count}": ("errors", len(errors)),
    }
    return [Row(key, f"{count}, loopback: {what}", [value]) for key, (what, value) in values.items()], errors[:10]


def _settle(server: FleetProcess) -> None:
    """Wait until there are no more requests."""
    kinds = [f"requests_{kind}" for kind in ("get", "list", "watch", "exec")]
    deadline, before = time.monotonic() + _SETTLED_WITHIN, -1
    while (now := sum(server.stats().get(kind, 0) for kind in kinds)) != before:
        if time.monotonic() >= deadline:
            raise Unmeasured(f"there are still requests of held sessions after {_SETTLED_WITHIN:g} s")
        before = now
        time.sleep(_SETTLED_AFTER)


def _panels(rows: Sequence[Row], sizes: Sequence[int], alone: Sequence[int]) -> list[Panel]:
    """Memory and launch time over the number of sessions."""
    by_key = {row.key: row for row in rows}

    def curve(counts: Sequence[int], key: str, *, ours: bool = True) -> list[tuple[float, float]]:
        found = ((count, by_key.get(key.format(count))) for count in counts)
        return [(count, median((row.ours if ours else row.theirs) or [])) for count, row in found if row]

    def panel(title: str, kind: str, loopback: str) -> Panel:
        curves = {
            f"{_OURS}, test cluster": curve(sizes, f"{kind}_ratio_{{}}"),
            f"{_THEIRS}, test cluster": curve(sizes, f"{kind}_ratio_{{}}", ours=False),
            f"{_OURS}, loopback server": curve(alone, loopback),
        }
        return Panel(title, {name: points for name, points in curves.items() if points})

    return [
        panel("memory of all, MB", "memory", "memory_{}_mb"),
        panel("until all are up, s", "launch", "up_{}_s"),
    ]
