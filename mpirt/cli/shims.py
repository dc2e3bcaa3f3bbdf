"""
`mpirt shims`: mpirt-rsh under the names that launchers start without asking.

Owns: which names, what may be replaced, and what is said about it. A shim is a link to mpirt-rsh, which knows by
the name under which it was started what dialect is spoken to it. Whatever else stands in its place is someone
else's.
"""

from __future__ import annotations

import filecmp
import os
import secrets
import shlex
import shutil
import sys
from pathlib import Path

import click

from mpirt import names
from mpirt.cli.env import LAUNCHERS, WORKERS, export_lines
from mpirt.errors import ConfigError

_SSH = "ssh"
_REMEDY = "run it as root, while the image is built for example, or mount one there"


class _NotPlaced(Exception):
    """Why a shim is not where it should be."""


@click.command()
@click.option(
    "--kubexec",
    type=click.Path(path_type=Path),
    default=Path(names.KUBEXEC_PATH),
    show_default=True,
    help="Where kubexec.sh is to be; horovodrun looks nowhere else than at the default.",
)
@click.option("--force", is_flag=True, help="Replace files that are not from mpirt.")
@WORKERS
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def shims(*, kubexec: Path, force: bool, workers: int, folder: Path) -> None:
    """Put mpirt-rsh into DIR as `ssh`, and to /etc/mpi/kubexec.sh where that can be written.

    For a launcher image with `pip install mpirt` in it. horovodrun starts ssh, or, when it is told to, kubexec.sh,
    and no other agent. Nothing that is not from mpirt is replaced without --force. Printed are lines of a POSIX
    shell that make horovodrun and Open MPI 4 use it; `mpirt env` has those for other launchers.

    \b
    Examples:
      eval "$(mpirt shims /opt/shims)" && horovodrun -np 2 -H worker-0:1,worker-1:1 python train.py
      RUN pip install mpirt && mpirt shims /opt/shims
    """
    agent = find_agent(sys.argv[0])
    folder = folder.absolute()
    try:
        _place(folder / _SSH, agent, force=force)
    except _NotPlaced as error:
        raise ConfigError(str(error)) from error
    placed = None
    try:
        placed = _place(kubexec.absolute(), agent, force=force)
    except _NotPlaced as error:
        click.echo(f"{names.MPIRT}: {error}; horovodrun takes {folder / _SSH} instead", err=True)
    click.echo(shell_lines(folder, kubexec=placed, workers=workers), nl=False)


def shell_lines(folder: Path, *, kubexec: Path | None, workers: int) -> str:
    """What makes launchers use the shims. A kubexec.sh that isn't at its place has yet to be taken there."""
    launcher = "horovod" if kubexec == Path(names.KUBEXEC_PATH) else "openmpi4"
    return f'export PATH={shlex.quote(str(folder))}:"$PATH"\n{export_lines(LAUNCHERS[launcher](workers))}'


def find_agent(program: str) -> Path:
    """The mpirt-rsh that belongs to this program, else the one on PATH. Raises ConfigError."""
    beside = Path(program).absolute().with_name(names.RSH)
    if "/" in program and os.access(beside, os.X_OK):
        return beside
    found = shutil.which(names.RSH)
    if found is None:
        raise ConfigError(f"{names.RSH} is neither beside this program nor on PATH; run: pip install mpirt")
    return Path(found).absolute()


def _place(shim: Path, agent: Path, *, force: bool) -> Path:
    """Have the agent under this name, and return it. Raises _NotPlaced."""
    try:
        if _is_agent(shim, agent):
            done = "is there already"
        elif force or _is_free(shim):
            _link(shim, agent)
            done = f"is {agent} now"
        else:
            raise _NotPlaced(f"{shim} is there already, and not from mpirt; --force replaces it")
    except OSError as error:
        raise _NotPlaced(f"can't write {shim}: {error.strerror}; {_REMEDY}") from error
    click.echo(f"{names.MPIRT}: {shim} {done}", err=True)
    return shim


def _is_agent(shim: Path, agent: Path) -> bool:
    """Whether it is the agent itself, a link to it, or a copy, such as one that a runtime folder brought."""
    return shim.is_file() and filecmp.cmp(shim, agent, shallow=False)


def _is_free(shim: Path) -> bool:
    """Whether nothing is lost when it is replaced: nothing is there, or a link to another mpirt-rsh."""
    if not shim.is_symlink():
        return not shim.exists()
    return shim.readlink().name == names.RSH


def _link(shim: Path, agent: Path) -> None:
    """In one step, so that whoever starts it meanwhile finds the former or the new one."""
    shim.parent.mkdir(parents=True, exist_ok=True)
    fresh = shim.with_name(f".{shim.name}-{secrets.token_hex(4)}")
    fresh.symlink_to(agent)
    try:
        fresh.replace(shim)
    finally:
        fresh.unlink(missing_ok=True)
