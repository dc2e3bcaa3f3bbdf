"""Running a program to its end, and an error that shows what it said."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.kube.errors import ClusterError

# Enough of a failed program's last words to see why, and little enough to read.
_LAST_LINES = 15


def run(
    *argv: str | Path,
    check: bool = True,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program; with `check`, a non-zero exit raises ClusterError with its last lines."""
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words,
            check=False,
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, **(env or {})},
            cwd=cwd,
            timeout=timeout,
        )
    except FileNotFoundError as error:
        raise ClusterError(f"{words[0]} is not installed", remedy="run: make cluster (as root)") from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"no end after {timeout:g} s: {_shown(words)}") from error
    if check and done.returncode != 0:
        said = "\n".join(f"    {line}" for line in _last_lines(done.stderr + done.stdout))
        raise ClusterError(f"exit {done.returncode}: {_shown(words)}\n{said}")
    return done


def output(*argv: str | Path, cwd: Path | None = None) -> str:
    """What a program printed, stripped; a non-zero exit raises."""
    return run(*argv, cwd=cwd).stdout.strip()


def _last_lines(text: str) -> Sequence[str]:
    return [line for line in text.splitlines() if line.strip()][-_LAST_LINES:]


def _shown(words: Sequence[str]) -> str:
    line = " ".join(words)
    return line if len(line) < 200 else line[:197] + "..."
