"""
`mpirt hosts`: a list of hosts, written for another launcher.

Owns: where the text comes from and what the person is told. What a list may look like is mpirt.hosts' matter.
"""

from __future__ import annotations

from pathlib import Path

import click

from mpirt.errors import SpecError, UsageError
from mpirt.hosts import Form, parse_hosts, render


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice([form.value for form in Form]),
    default=Form.HOROVOD.value,
    show_default=True,
    help="Who is going to read the list.",
)
@click.argument("file", metavar="FILE|-")
def hosts(form: str, file: str) -> None:
    """Write a list of hosts in the form that another launcher reads.

    FILE is such a list, or - for standard input: one host a line as Open MPI, Hydra or Horovod write it, with
    comments and blank lines where you like. A host that is listed again gets the sum of its slots.

    \b
    horovod   NAME:SLOTS, what a discovery script of horovodrun prints
    hostfile  NAME slots=SLOTS, what mpirun and horovodrun take as --hostfile
    hydra     NAME:SLOTS, what MPICH's and Intel MPI's mpiexec take as -f
    json      one array of {"name": ..., "slots": ...}

    \b
    Examples:
      mpirt hosts --format hydra /etc/mpi/hostfile > machines
      sort "$PBS_NODEFILE" | mpirt hosts --format hostfile -
    """
    source = "standard input" if file == "-" else file
    text = _read(file, source)
    try:
        found = parse_hosts(text)
    except SpecError as error:
        raise SpecError(f"{source}, {error.field}", error.problem) from error
    click.echo(render(found, Form(form)), nl=False)


def _read(file: str, source: str) -> str:
    try:
        # Descriptor 0 and not sys.stdin, which is None for a program that was started without one.
        with open(0, "rb", closefd=False) if file == "-" else Path(file).open("rb") as stream:
            # Editors on other systems put a byte order mark in front.
            return stream.read().decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {source}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SpecError(source, f"is not a text file: byte {error.start} is not UTF-8") from error
