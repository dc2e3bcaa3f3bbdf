"""What takes long says so: one line for each step on stderr, with the seconds it took."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def step(what: str) -> Iterator[None]:
    """Print `what ... 84 s` at the end of the block; a terminal sees `what ...` from its start."""
    started = time.monotonic()
    if sys.stderr.isatty():
        print(f"{what} ...", end="\r", file=sys.stderr, flush=True)
    try:
        yield
    except BaseException:
        print(f"{what} ... failed after {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
        raise
    print(f"{what} ... {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
