"""The benchmarks' command line: one command for each program, and the one place that turns errors into a line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import click

from benchmarks import beside, flow, leaving, place, report
from benchmarks import controller as upkeep
from benchmarks import deaths as ends
from benchmarks import discover as looking
from benchmarks import elastic as elastic_scenario
from benchmarks import fleet as crowds
from benchmarks import outages as interruptions
from benchmarks import rsh as scenario
from benchmarks import runtime as folder
from benchmarks.access import Access
from benchmarks.comparison import Comparison
from benchmarks.fleetreport import Results
from benchmarks.measure import Unmeasured
from testbed.kube.errors import ClusterError

_json = click.option(
    "--json", "as_json", is_flag=True, help="Print the figures as one JSON object on the last line."
)
_kubectl = click.option(
    "--kubectl",
    type=click.Path(exists=True, dir_okay=False, executable=True, resolve_path=True, path_type=Path),
    help="The kubectl to compare with; the test cluster's own by default.",
)
_access = click.option(
    "--access",
    type=click.Choice([way.value for way in Access]),
    default=Access.POD.value,
    show_default=True,
    help="How both reach the cluster: as in a launcher pod (root), or by a kubeconfig.",
)


def _machine() -> str:
    return f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f} at the start"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """
    Side by side against what people use today, on the test cluster.

    The cluster is started when none runs (root), or that of MPIRT_TEST_KUBECONFIG is used. Everything happens in a
    namespace that is removed at the end. Figures are printed and nothing is asserted: it ends with 1 only when
    something could not be measured.

    \b
    Examples:
      python -m benchmarks rsh                    a table
      python -m benchmarks rsh --json | tail -n1  the ratios
      python -m benchmarks fleet                  many sessions at once, and thousands on a loopback server
      python -m benchmarks discover --json        the same of mpirt-discover
      python -m benchmarks deaths                 how both end when pods, nodes and the API server die
      python -m benchmarks outages                whose jobs go on when API server and nodes are away for a while
      python -m benchmarks elastic                Horovod whose workers die or leave, on either agent
      python -m benchmarks runtime                the runtime image beside pip
      python -m benchmarks controller             what the controller costs
      python -m benchmarks controller --beside mpi-operator
    """


def _mebibytes(_context: click.Context, _parameter: click.Parameter, count: int) -> int:
    mebibytes, rest = divmod(count, flow.MIB)
    if rest or not mebibytes:
        raise click.BadParameter(f"expected a multiple of {flow.MIB}, got {count}")
    return mebibytes


@cli.command()
@_json
@click.option("--runs", type=click.IntRange(1), default=30, show_default=True, help="Pairs of short commands.")
@click.option("--held", type=click.IntRange(1), default=48, show_default=True, help="Sessions held at once.")
@click.option("--streams", type=click.IntRange(1), default=3, show_default=True, help="Pairs of each direction.")
@click.option(
    "--bytes",
    "mebibytes",
    type=int,
    default=1 << 30,
    show_default=True,
    callback=_mebibytes,
    help="Bytes that flow in each of them; whole MiB.",
)
@click.option(
    "--only",
    type=click.Choice([part.value for part in scenario.Part]),
    multiple=True,
    help="Measure this only; may be repeated.",
)
@_kubectl
@_access
def rsh(
    *,
    as_json: bool,
    runs: int,
    held: int,
    streams: int,
    mebibytes: int,
    only: tuple[str, ...],
    kubectl: Path | None,
    access: str,
) -> None:
    """
    mpirt-rsh beside kubectl exec: time, CPU time and memory of `true`, the time to a command's first byte with and
    without a keeper, memory and processes of sessions held at once, and the time of 1 GiB of stdout and of stdin.
    """
    machine, parts = _machine(), {scenario.Part(one) for one in only} or set(scenario.Part)
    with (
        place.fresh_namespace() as namespace,
        scenario.contest(namespace, access=Access(access), kubectl=kubectl) as contest,
    ):
        counts = f"{runs} pairs, {held} held, {streams} pairs of {mebibytes} MiB"
        heading = f"{contest.versions()}\n{machine}; access as {access}; keeper mounted; {counts}"
        measured: dict[scenario.Part, Callable[[], list[Comparison]]] = {
            scenario.Part.TRUE: lambda: contest.short_command(runs),
            scenario.Part.START: lambda: contest.start(runs),
            scenario.Part.HELD: lambda: contest.held_sessions(held),
            scenario.Part.STREAMS: lambda: contest.streams(streams, mebibytes),
        }
        comparisons = [one for part, measure in measured.items() if part in parts for one in measure()]
    click.echo(f"\n{heading}\n")
    click.echo(report.rendered(comparisons, ours=scenario.OURS, theirs=scenario.THEIRS))
    if as_json:
        click.echo(report.json_line(report.figures(comparisons)))


def _counts(_context: click.Context, _parameter: click.Parameter, text: str) -> list[int]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isascii() and word.isdigit() and int(word) for word in words):
        raise click.BadParameter(f"expected numbers such as 1,16,64, got {text!r}")
    return sorted({int(word) for word in words})


@cli.command()
@_json
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Draw memory and launch time over the number of sessions into this SVG.",
)
@click.option(
    "--sizes",
    default="1,16,64",
    show_default=True,
    callback=_counts,
    help="Sessions held at once by each, on the cluster; '' for none, which needs no cluster.",
)
@click.option(
    "--alone",
    default="1000,5000",
    show_default=True,
    callback=_counts,
    help="Sessions of mpirt-rsh on the loopback server; '' for none.",
)
@click.option(
    "--idle",
    type=click.FloatRange(1),
    default=30,
    show_default=True,
    help="Seconds for which nothing happens to them.",
)
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Pairs of each size.")
@click.option("--runs", type=click.IntRange(1), default=30, show_default=True, help="Pairs of short commands.")
@_kubectl
@_access
def fleet(
    *,
    as_json: bool,
    plot: Path | None,
    sizes: list[int],
    alone: list[int],
    idle: float,
    rounds: int,
    runs: int,
    kubectl: Path | None,
    access: str,
) -> None:
    """
    Many sessions at once, with one switchboard for all of them: time until all are up, memory and CPU time beside
    as many kubectl exec; the same for thousands on a loopback API server, and their cost while nothing happens.
    """
    machine, beside, told = _machine(), None, ""
    if sizes:
        with (
            place.fresh_namespace() as namespace,
            crowds.contest(namespace, access=Access(access), kubectl=kubectl) as contest,
        ):
            told = f"{contest.versions()}\n"
            beside = contest.measure(sizes, rounds, runs)
    results = Results(beside, {count: crowds.alone(count, idle) for count in alone})
    click.echo(f"\n{told}{machine}; access as {access}; {rounds} rounds, {runs} pairs\n\n{results.rendered()}")
    if plot is not None:
        plot.write_text(results.plot(), encoding="utf-8")
    if as_json:
        click.echo(report.json_line(results.figures()))


@cli.command()
def deaths() -> None:
    """mpirt-rsh beside kubectl exec when pods, nodes and the API server die. 5 minutes, root."""
    click.echo(ends.rendered(ends.races()))


@cli.command()
@click.option("--only", default="", help="Outages with these words in their names, such as frozen.")
def outages(*, only: str) -> None:
    """Jobs of every launcher through outages, by mpirt-rsh and by kubectl exec. 15 minutes, root."""
    click.echo(interruptions.measure(only).rendered())


_LOSSES, _LEAVES = "losses", "leaves"


@cli.command()
@click.option("--only", type=click.Choice([_LOSSES, _LEAVES]), help="Measure this only.")
def elastic(*, only: str | None) -> None:
    """
    Elastic Horovod loses workers, by mpirt and by kubectl exec with a static script; and workers leave it, by
    mpirt's controller and as et-operator does it. 20 minutes, root.
    """
    if only != _LEAVES:
        click.echo(elastic_scenario.rendered(elastic_scenario.timelines()))
    if only != _LOSSES:
        click.echo(leaving.rendered(leaving.departures()))


@cli.command()
@_json
@click.option("--runs", type=click.IntRange(1), default=30, show_default=True, help="Pairs of each kind.")
@_kubectl
@_access
def discover(*, as_json: bool, runs: int, kubectl: Path | None, access: str) -> None:
    """mpirt-discover beside kubectl get pods: time, CPU time and memory, and how its time grows with the pods."""
    machine = _machine()
    with (
        place.fresh_namespace() as namespace,
        looking.contest(namespace, access=Access(access), kubectl=kubectl) as contest,
    ):
        heading = f"{contest.versions()}\n{machine}; access as {access}; {runs} pairs"
        beside, growth = contest.three_hosts(runs), contest.growth(runs)
    click.echo(f"\n{heading}\n")
    click.echo(report.rendered(beside, ours=looking.OURS, theirs=looking.THEIRS))
    click.echo(f"\n{looking.OURS} alone\n")
    click.echo(report.rendered(growth, ours=looking.MANY, theirs=looking.FEW))
    if as_json:
        click.echo(report.json_line(report.figures([*beside, *growth])))


@cli.command()
@_json
@click.option("--runs", type=click.IntRange(1), default=30, show_default=True, help="Pairs of starts.")
@_access
def runtime(*, as_json: bool, runs: int, access: str) -> None:
    """The runtime image: its size, the time to copy it, and its mpirt-rsh beside the one that pip installs."""
    machine = _machine()
    with place.fresh_namespace() as namespace, folder.contest(namespace, access=Access(access)) as contest:
        copied = contest.copied()
        comparisons = contest.starts(runs)
    click.echo(f"\n{machine}; access as {access}; {runs} pairs\n{copied.rendered()}\n")
    click.echo(report.rendered(comparisons, ours=folder.OURS, theirs=folder.THEIRS))
    if as_json:
        click.echo(report.json_line({**copied.figures(), **report.figures(comparisons)}))


@cli.command()
@_json
@click.option(
    "--jobs", type=click.IntRange(1), help=f"Jobs created at once.  [default: {upkeep.JOBS}; {beside.JOBS} beside]"
)
@click.option(
    "--workers", type=click.IntRange(1), help=f"Workers of each of them.  [default: 1; {beside.WORKERS} beside]"
)
@click.option(
    "--beside", "other", type=click.Choice([beside.THEIRS]), help="Compare with this one, on real nodes."
)
@click.option(
    "--runs", type=click.IntRange(1), default=10, show_default=True, help="Pairs of small jobs, with --beside."
)
def controller(*, as_json: bool, jobs: int | None, workers: int | None, other: str | None, runs: int) -> None:
    """
    The controller on a control plane without nodes: writes a job, requests in peace, many jobs at once, memory,
    CPU, a restart. Needs no root.

    With --beside, the controller and mpi-operator on the test cluster: the time to a job's first output, writes,
    many jobs at once, CPU, memory. 20 minutes, root.
    """
    if other:
        _beside(runs, jobs or beside.JOBS, workers or beside.WORKERS, as_json=as_json)
    else:
        _alone(jobs or upkeep.JOBS, workers or 1, as_json=as_json)


def _alone(jobs: int, workers: int, *, as_json: bool) -> None:
    machine = _machine()
    with place.fresh_controller(jobs * (workers + 1)) as installed:
        costs = upkeep.measure(installed, jobs, workers)
    click.echo(f"\n{machine}; the load beside a figure is that of its last minute\n")
    for line in costs.lines():
        click.echo(line)
    if as_json:
        click.echo(report.json_line(costs.figures()))


def _beside(runs: int, jobs: int, workers: int, *, as_json: bool) -> None:
    machine = _machine()
    with beside.contest() as contest:
        comparisons = contest.measure(runs, jobs, workers)
    click.echo(f"\n{machine}; {runs} pairs of small jobs; {jobs} jobs of {workers} workers\n")
    click.echo(report.rendered(comparisons, ours=beside.OURS, theirs=beside.THEIRS))
    if as_json:
        click.echo(report.json_line(report.figures(comparisons)))


def main() -> None:
    try:
        cli(prog_name="python -m benchmarks")
    except (Unmeasured, ClusterError, OSError) as error:
        click.echo(f"not measured: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
