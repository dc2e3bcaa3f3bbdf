"""
The `mpirt` command: its subcommands, and the one place that turns errors into a line and an exit code.

Owns: names of subcommands, what is said on failure, what the process ends with. Subcommands raise; they never
exit, and they never catch what they can't mend.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from mpirt import names
from mpirt.cli.launchers import env, hosts, shims
from mpirt.cli.ps.command import ps
from mpirt.cli.scale.command import scale
from mpirt.errors import ExitCode, MpirtError

# As the shell reports a program that SIGINT or SIGPIPE ended.
_INTERRUPTED = 128 + 2
_READER_GONE = 128 + 13


@click.group(
    commands=[env, hosts, ps, scale, shims],
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=False,
)
@click.version_option(package_name="mpirt", prog_name=names.MPIRT, message="%(prog)s %(version)s")
def mpirt() -> None:
    """Run MPI and Horovod jobs on Kubernetes.

    \b
    Examples:
      mpirt hosts --format hydra hostfile
      eval "$(mpirt env openmpi4)"
      eval "$(mpirt shims /opt/shims)"
      mpirt ps --watch
      mpirt scale train +2
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return what the process shall end with; nothing is raised but bugs."""
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except MpirtError as error:
        return _fail(str(error), error.code)
    except click.UsageError as error:
        program = error.ctx.command_path if error.ctx else names.MPIRT
        return _fail(f"{error.format_message().rstrip('.')}; see: {program} --help", ExitCode.USAGE)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        _forget_output()
        return _READER_GONE
    except OSError as error:
        _forget_output()
        return _fail(f"cannot write the output: {error.strerror}", ExitCode.INTERNAL)


def _run(words: list[str]) -> int:
    # Not `mpirt.main()`: it ends the process by itself, with code 1, when the reader of a pipe is gone.
    try:
        with mpirt.make_context(names.MPIRT, words) as context:
            mpirt.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    return ExitCode.OK


def _fail(message: str, code: ExitCode) -> int:
    click.echo(f"{names.MPIRT}: {message}", err=True)
    return code


def _forget_output() -> None:
    """Let what is still buffered go nowhere, so that the interpreter's last flush can't fail aloud."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
