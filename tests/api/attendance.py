"""
How a controller is while somebody plays against it.

Owns: looking at /healthz and /metrics again and again, and what its log says of itself.
"""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.api.controllers import Replica
from tests.support.metrics import parse

_EVERY = 0.5
# The one of the Deployment's probe.
_PROBE_TIMEOUT = 5.0
_MEMORY = "process_resident_memory_bytes"


@dataclass
class Seen:
    """What was seen so far."""

    health: Counter[str] = field(default_factory=Counter)
    """How often /healthz answered what."""
    memory: float = 0.0
    """The most bytes that it had."""
    depth: float = 0.0
    """The most jobs that waited for their turn."""


@contextmanager
def looking(replica: Replica) -> Iterator[Seen]:
    """Look until the end of the block."""
    seen, stop = Seen(), threading.Event()
    looker = threading.Thread(target=_look, args=(replica, seen, stop), name="attendance")
    looker.start()
    try:
        yield seen
    finally:
        stop.set()
        looker.join()


def internal_errors(replica: Replica) -> dict[str, list[str]]:
    """What it says of mistakes of its own, and the jobs in which it made them."""
    found: dict[str, list[str]] = {}
    for line in replica.log():
        if "internal error" in str(line):
            jobs = found.setdefault(str(line.get("error")), [])
            jobs.append(str(line.get("job")))
    return found


def _health(replica: Replica) -> str:
    try:
        with urllib.request.urlopen(f"{replica.url}/healthz", timeout=_PROBE_TIMEOUT) as answer:
            return str(answer.read().decode()).strip()
    except urllib.error.HTTPError as error:
        return f"{error.code}: {error.read().decode().strip()}"
    except OSError as error:
        return f"no answer: {error}"


def _look(replica: Replica, seen: Seen, stop: threading.Event) -> None:
    while not stop.wait(_EVERY):
        seen.health[_health(replica)] += 1
        page = replica.page("/metrics")
        if page:
            scrape = parse(page)
            seen.memory = max(seen.memory, scrape.value(_MEMORY))
            seen.depth = max(seen.depth, scrape.value("mpirt_controller_queue_depth"))
