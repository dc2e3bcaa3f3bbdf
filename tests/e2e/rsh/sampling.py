"""
What a launcher pod holds while its job runs: switchboards, and connections to others.

Owns: the program that looks, inside the pod, and what it has seen.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from testbed.ground import Namespace

# Connections of IPv4 and IPv6 that are established, but those inside of the pod.
_CONNECTIONS = """
def connections():
    count = 0
    for name in ("tcp", "tcp6"):
        for line in open(f"/proc/net/{name}").readlines()[1:]:
            _, _, peer, state, *_ = line.split()
            count += state == "01" and peer.endswith((":01BB", ":192B"))
    return count
"""
# Looks until its stdin ends. A switchboard's place is in its variables; two would be two processes.
PROGRAM = (
    _CONNECTIONS
    + r"""
import json, os, select, sys

def switchboards():
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        try:
            words = open(f"/proc/{pid}/cmdline", "rb").read()
        except OSError:
            continue
        if b"mpirt.cli.switchboard" in words or b"mpirt-switchboard" in words:
            found.add(int(pid))
    return found

seen, counts = set(), {}
print("looks", flush=True)
while not select.select([0], [], [], 0.2)[0]:
    seen |= switchboards()
    now = connections()
    counts[now] = counts.get(now, 0) + 1
print(json.dumps({"switchboards": sorted(seen), "connections": counts}))
"""
)


@dataclass
class Seen:
    """What was there at any moment."""

    switchboards: list[int] = field(default_factory=list)
    """Their process ids."""
    connections: dict[int, int] = field(default_factory=dict)
    """How often so many connections to the API server were counted."""


def connections(namespace: Namespace, pod: str) -> int:
    """How many connections to the API server there are now."""
    return int(namespace.kubectl.execute(pod, "python3", "-c", f"{_CONNECTIONS}\nprint(connections())"))


@contextmanager
def looking(namespace: Namespace, pod: str) -> Iterator[Seen]:
    """Look while the block runs; the result is there after it."""
    seen = Seen()
    argv = namespace.kubectl.argv("exec", "--stdin", pod, "--", "python3", "-c", PROGRAM)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "looks\n"
            yield seen
            told, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    found = json.loads(told)
    seen.switchboards = found["switchboards"]
    seen.connections = {int(count): times for count, times in found["connections"].items()}
