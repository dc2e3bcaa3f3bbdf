"""A Horovod program of two ranks that says where each of them ran, and what it must say."""

from __future__ import annotations

from collections.abc import Iterable

# By itself it gives its ranks 30 s to start, and each of them as long to find the others: not enough where other
# tests keep the processors busy.
START_SECONDS = "200"
PATIENT = ("--start-timeout", START_SECONDS, "--gloo-timeout-seconds", START_SECONDS)
COMMAND = ("horovodrun", *PATIENT, "-np", "2", "-H", "worker-0:1,worker-1:1", "python3", "-c")

ALLREDUCE = """
import horovod.torch as hvd, socket, torch
hvd.init()
total = hvd.allreduce(torch.tensor([float(hvd.rank() + 1)]), op=hvd.Sum)
print(f"host={socket.gethostname()} rank={hvd.rank()} size={hvd.size()} sum={total.item():g}", flush=True)
"""

REDUCED = {"host=worker-0 rank=0 size=2 sum=3", "host=worker-1 rank=1 size=2 sum=3"}


def results(lines: Iterable[str]) -> set[str]:
    """What the ranks said, without horovodrun's prefix of rank and stream."""
    return {line.partition("<stdout>:")[2] for line in lines if "<stdout>:host=" in line}
