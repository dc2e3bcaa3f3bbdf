"""
Many commands of one launcher, by one switchboard, in pods on both nodes: half of them lose their node.

Each counts once a second, until it is told that it is enough.
"""

from __future__ import annotations

import subprocess
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from testbed.ground import Namespace
from testbed.kube.wait import Moment, until
from testbed.manifests import on
from tests.e2e.lostnode.jobs import KEPT, LOST
from tests.e2e.rsh import launcher, sampling

PODS, SESSIONS = 4, 8
"""On each node, and in each pod."""

_LAUNCHER = "crowd-launcher"
_STARTED_WITHIN = 120.0
_ENOUGH = "/tmp/enough"
_COUNTS = f"n=0; until [ -e {_ENOUGH} ]; do n=$((n + 1)); echo $n; sleep 1; done"

# Runs in the launcher pod; its words are the pods. Says what each agent printed, and with which code it ended.
_DRIVER = f"""
import subprocess, sys, threading
said = threading.Lock()

def say(*words):
    with said:
        print(*words, flush=True)

def follow(pod, number):
    # The machine is busy. How long a pod may take to be reached is not what this is about.
    agent = subprocess.Popen(["mpirt-rsh", "-o", "ConnectTimeout=300", pod, {_COUNTS!r}], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in agent.stdout:
        say("number", pod, number, line.strip())
    say("end", pod, number, agent.wait(), agent.stderr.read().strip())

for pod in sys.argv[1:]:
    for number in range({SESSIONS}):
        threading.Thread(target=follow, args=(pod, number)).start()
"""

Session = tuple[str, int]


class Crowd:
    """What the sessions have said by now, each with the moment."""

    def __init__(self, namespace: Namespace, kept: Sequence[str], lost: Sequence[str]) -> None:
        self.namespace = namespace
        self.kept = sessions(kept)
        self.lost = sessions(lost)
        self.switchboards: list[int] = []
        """The process ids of all that there were while they were started."""
        self.numbers: dict[Session, list[tuple[Moment, int]]] = defaultdict(list)
        self.ends: dict[Session, tuple[Moment, int, str]] = {}
        """The moment, the code, and what was said on stderr."""
        argv = namespace.kubectl.argv("exec", _LAUNCHER, "--", "python3", "-c", _DRIVER, *kept, *lost)
        self._process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def all_count(self) -> bool:
        assert not self.ends, self.ends
        return all(self.numbers.get(one) for one in (*self.kept, *self.lost))

    def have_ended(self, some: Sequence[Session]) -> bool:
        return self.ends.keys() >= set(some)

    def enough(self) -> None:
        """Have those that still count end by themselves."""
        for pod in sorted({pod for pod, _ in self.kept}):
            self.namespace.kubectl.execute(pod, "touch", _ENOUGH)

    def longest_pause(self, one: Session) -> float:
        """The longest time between a number and the next one, or the end."""
        moments = [moment for moment, _ in self.numbers[one]] + [self.ends[one][0]]
        return max(earlier.until(later) for earlier, later in pairwise(moments))

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                kind, pod, number, rest = line.rstrip("\n").split(" ", 3)
                self._note(kind, (pod, int(number)), rest)

    def _note(self, kind: str, one: Session, rest: str) -> None:
        now = Moment.now()
        if kind == "number":
            self.numbers[one].append((now, int(rest)))
        else:
            code, _, errors = rest.partition(" ")
            self.ends[one] = (now, int(code), errors)


def sessions(pods: Sequence[str]) -> list[Session]:
    return [(pod, number) for pod in pods for number in range(SESSIONS)]


@contextmanager
def running(namespace: Namespace) -> Iterator[Crowd]:
    """All of them, when each has counted."""
    kept, lost = (
        namespace.workers(PODS, "busybox", name=f"crowd-{node}", topologySpreadConstraints=[], **on(node))
        for node in (KEPT, LOST)
    )
    launcher.start(namespace, "openmpi4", workers=[*kept, *lost], name=_LAUNCHER, **on(KEPT))
    with sampling.looking(namespace, _LAUNCHER) as seen:
        crowd = Crowd(namespace, kept, lost)
        try:
            until(crowd.all_count, within=_STARTED_WITHIN, what="all commands to count")
        except BaseException:
            crowd.stop()
            raise
    crowd.switchboards = seen.switchboards
    try:
        yield crowd
    finally:
        crowd.stop()
