"""
`mpirt env`: the variables that make a launcher start its commands through mpirt-rsh.

Owns: which launcher wants which, and why it wants them. The variables are in mpirt.launchenv.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping

import click

from mpirt import launchenv, names

Variables = Mapping[str, str]


def _horovod(workers: int) -> Variables:
    # horovodrun compares the agent with this path, letter by letter, and takes ssh otherwise.
    return launchenv.open_mpi_4(names.KUBEXEC_PATH, workers)


LAUNCHERS: Mapping[str, Callable[[int], Variables]] = {
    "openmpi4": lambda workers: launchenv.open_mpi_4(names.RSH, workers),
    "openmpi5": lambda workers: launchenv.open_mpi_5(names.RSH, workers),
    "mpich": lambda _workers: launchenv.mpich(names.RSH),
    "intel": lambda _workers: launchenv.intel(names.RSH),
    "horovod": _horovod,
}


WORKERS = click.option(
    "--workers", type=click.IntRange(min=1), default=128, show_default=True, help="How many there will be at most."
)


def export_lines(variables: Variables) -> str:
    """Lines of a POSIX shell that set them."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())


@click.command()
@WORKERS
@click.argument("launcher", type=click.Choice(list(LAUNCHERS)))
def env(workers: int, launcher: str) -> None:
    """Print the variables that make a launcher start its commands through mpirt-rsh.

    They are lines of a POSIX shell. Workers need nothing of mpirt, but for horovodrun, which takes the agent only
    from /etc/mpi/kubexec.sh: `mpirt shims` puts mpirt-rsh there under that name, in the launcher.

    \b
    Examples:
      eval "$(mpirt env openmpi4)" && mpirun --hostfile hosts hostname
      mpirt env openmpi5 --workers 300
    """
    click.echo(export_lines(LAUNCHERS[launcher](workers)), nl=False)
