"""
`mpirt ps`: the commands that run from a launcher.

Owns: what is asked, where, and how the answer is printed.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mpirt import names
from mpirt.cli.ps import table
from mpirt.cli.ps.boards import ORDERS, Board, ordered, rows_of, write
from mpirt.cli.ps.live import check, watch
from mpirt.cli.ps.table import Format
from mpirt.errors import UsageError

if TYPE_CHECKING:
    from mpirt.cli.ps.sources import Local, Remote

_NOTHING = "no commands are running (no switchboard)"
_PAUSE, _REMOTE_PAUSE = 1.0, 5.0
_EXAMPLES = """
\b
Examples:
  mpirt ps --sort silence
  mpirt ps --watch
  mpirt ps -o '{pod:20} {state:10} {age:>8.0f} {cpu:>8.1f}'
  mpirt ps --json | jq '.switchboards[].commands[] | select(.state == "detached") | .pod'
  mpirt ps train -n ml
"""


@click.command(epilog=_EXAMPLES)
@click.option("-o", "--output", "form", metavar="FORMAT", help="A line for each command, such as '{pod} {age}'.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document with everything that is known.")
@click.option("-w", "--watch", "live", is_flag=True, help="A live view in a terminal; q ends it.")
@click.option(
    "--sort", "by", type=click.Choice(list(ORDERS)), default="pod", show_default=True, help="What comes first."
)
@click.option("-n", "--namespace", default="", help="The namespace of JOB, if not the kubeconfig's.")
@click.option("--context", default="", help="The kubeconfig's context for JOB, if not the current one.")
@click.argument("job", required=False)
def ps(
    *, form: str | None, as_json: bool, live: bool, by: str, namespace: str, context: str, job: str | None
) -> None:
    """Show the commands that run from this launcher, or from the launcher of JOB.

    In a launcher pod it needs no JOB. With JOB it runs `mpirt ps` in that job's launcher pod, through the API
    server; the pod must have mpirt. Commands that run without a switchboard (MPIRT_SWITCHBOARD=off) are not shown.

    \b
    POD, NODE     where the command runs
    STATE         waiting (for its pod to be Ready), queued (for its turn), dial, hello, go,
                  running, detached (its connection is lost, and looked for), terminating,
                  exited, done
    CPU, MEM      time and memory of the command's processes in the pod; - if it is not
                  known; --watch adds %CPU, since the last look
    OUT, IN       bytes from the command, and of stdin to it
    SILENT        time since the last sign of life from the pod
    COMMAND       cut to the terminal's width; all of it with -o and --json

    \b
    Names for -o: pod node namespace container command agent state started age
    stdout stderr stdin silence held generation waiting cpu memory processes
    agent_cpu agent_memory
    """
    _check(form=form, as_json=as_json, live=live, only_for_job=bool(namespace or context), job=job)
    wanted = None if form is None else Format(form)
    source = _source(job, namespace=namespace, context=context)
    try:
        if live:
            watch(source.ask, by=by, pause=_PAUSE if job is None else _REMOTE_PAUSE)
        else:
            _print(source.ask(), by=by, as_json=as_json, form=wanted)
    finally:
        source.close()


def _check(*, form: str | None, as_json: bool, live: bool, only_for_job: bool, job: str | None) -> None:
    """Refuse what can't be meant. Raises UsageError."""
    chosen = [
        option for option, given in (("-o", form is not None), ("--json", as_json), ("--watch", live)) if given
    ]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} are given; choose one of them")
    if only_for_job and job is None:
        raise UsageError(
            "-n and --context are for the launcher of a job; name it, as in: mpirt ps JOB -n NAMESPACE"
        )
    if live:
        check()


def _source(job: str | None, *, namespace: str, context: str) -> Local | Remote:
    from mpirt.cli.ps.sources import Local, Remote  # noqa: PLC0415  brings what no other command needs

    if job is not None:
        return Remote(job, os.environ, namespace=namespace, context=context)
    return Local(os.environ, _warn)


def _print(boards: Sequence[Board], *, by: str, as_json: bool, form: Format | None) -> None:
    if not boards:
        _warn(_NOTHING)
    if as_json:
        sorted_boards = [Board(one.place, one.status, one.usage, tuple(ordered(one.rows, by))) for one in boards]
        click.echo(write(sorted_boards))
        return
    rows = ordered(rows_of(boards), by)
    if form is not None:
        click.echo("".join(f"{form.line(row)}\n" for row in rows), nl=False)
    elif boards:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        click.echo(table.table(rows, width), nl=False)
        click.echo("".join(f"\n{table.summary(board)}" for board in boards))


def _warn(line: str) -> None:
    click.echo(f"{names.MPIRT}: {line}", err=True)
