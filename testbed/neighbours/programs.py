"""Starting a neighbour's program, and waiting until it says that it is ready."""

from __future__ import annotations

import ssl
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from testbed.kube.errors import ClusterError
from testbed.kube.wait import until
from testbed.plane import children
from testbed.plane.children import Child

_READY_WITHIN = 120.0


@contextmanager
def running(
    argv: Sequence[str | Path],
    log: Path,
    health: str,
    environment: dict[str, str] | None = None,
    *,
    authority: Path | None = None,
) -> Iterator[Child]:
    """
    The program, once it answers with a good status at the address `health`; it is gone after the block.

    `authority`: the certificate that it shows there, if it speaks TLS.
    """
    context = ssl.create_default_context(cafile=authority) if authority else None
    child = children.start([str(word) for word in argv], log, environment)
    try:
        until(
            lambda: child.is_over or _is_good(health, context),
            within=_READY_WITHIN,
            what=log.stem,
            remedy=f"see {log}",
        )
        if child.is_over:
            raise ClusterError(f"{log.stem} has ended with code {child.process.returncode}", remedy=f"see {log}")
        yield child
    finally:
        child.end()


def _is_good(address: str, context: ssl.SSLContext | None) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5, context=context) as answer:
            return 200 <= int(answer.status) < 300
    except OSError:
        return False
