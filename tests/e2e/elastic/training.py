"""
A training that runs: its log as it grows, and its end.

Owns: following the launcher's log, and waiting for what it says.
"""

from __future__ import annotations

import math
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from testbed.ground import Namespace
from testbed.kube.errors import ClusterError
from testbed.kube.wait import Stopwatch, until
from tests.e2e.elastic.steps import COMMIT_EVERY, Line, Step, digest, line_of, resumed_of, step_of

FINISH = "/tmp/finish"

SELDOM = {"HOROVOD_CYCLE_TIME": "5"}
"""
Ranks look every so many milliseconds what there is to do. Once in each takes a tenth of a processor; but who waits
for a sum asks all the time until the others have looked.
"""

_LAST_LINES = 100
_LOOKS_EVERY = 0.5

Found = TypeVar("Found")


class Training:
    """One launcher pod's log, read by a thread of its own, so that nothing is missed while a test acts."""

    def __init__(self, namespace: Namespace, pod: str, log: subprocess.Popen[str]) -> None:
        self.namespace = namespace
        self.pod = pod
        self._log = log
        self._lines: list[Line] = []
        self._grown = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def lines(self, *, since: float = 0.0, until: float = math.inf) -> list[Line]:
        with self._grown:
            return [line for line in self._lines if since <= line.at <= until]

    def steps(self, *, since: float = 0.0) -> list[Step]:
        return [step for step in map(step_of, self.lines(since=since)) if step is not None]

    def step(self, wanted: Callable[[Step], bool], *, since: float, within: float, what: str) -> Step:
        """The first such step that was logged after `since`; waits for it no longer than `within` after now."""

        def found() -> Step | None:
            return next(filter(wanted, self.steps(since=since)), None)

        return self._wait(found, within=within, what=what)

    def world(self, size: int, *, since: float, within: float) -> Step:
        """The first step after `since` in a world of this size."""
        return self.step(lambda step: step.size == size, since=since, within=within, what=f"a world of {size}")

    def next_world(self, *, since: float, within: float, at_most: int) -> Step:
        """The first step of a world that began after `since` and is no larger than this."""

        def found() -> Step | None:
            begun = [line.at for line in self.lines(since=since) if resumed_of(line) is not None]
            firsts = (next(iter(self.steps(since=at)), None) for at in begun)
            return next((step for step in firsts if step is not None and step.size <= at_most), None)

        return self._wait(found, within=within, what=f"another world, of {at_most} at most")

    def settled(self, entered: Step) -> None:
        """
        Wait until the world of this step has committed twice, and has thus seen whether still other hosts came.

        Horovod does not survive a death while it enters a world, and no test is to hit that moment.
        """
        enough = entered.number + 2 * COMMIT_EVERY
        self.step(lambda step: step.number > enough, since=entered.at, within=60, what=f"step {enough}")

    def line(self, *words: str, since: float, within: float) -> Line:
        """The first line after `since` that has all these words."""

        def found() -> Line | None:
            return next((line for line in self.lines(since=since) if all(w in line.text for w in words)), None)

        return self._wait(found, within=within, what=f"a line with {' and '.join(words)}")

    def death(self, worker: str, *, since: float) -> float:
        """When the agent of this worker said what became of it."""
        return self.line("mpirt-rsh: ", f" pod {worker} ", since=since, within=30).at

    def finish(self, worker: str) -> None:
        """Have training end at its next commit; any of its workers can say so."""
        self.namespace.kubectl.execute(worker, "touch", FINISH)

    def exit_code(self, *, within: float) -> int:
        """The launcher's exit code, when it has ended."""

        def ended() -> Any:
            status = self.namespace.kubectl.get("pod", self.pod)["status"]
            return status["containerStatuses"][0]["state"].get("terminated")

        code = int(until(ended, within=within, what=f"the end of {self.pod}", instead=self.tail)["exitCode"])
        self._reader.join(timeout=30)
        return code

    def tail(self) -> str:
        """The end of the log, a line each, to be shown with what went wrong."""
        with self._grown:
            return "".join(f"\n  {text}" for text in digest(self._lines)[-_LAST_LINES:])

    def _wait(self, found: Callable[[], Found | None], *, within: float, what: str) -> Found:
        watch = Stopwatch()
        with self._grown:
            while (answer := found()) is None:
                if watch.seconds() > within or not self._reader.is_alive():
                    raise ClusterError(f"waited {within:g} s for {what}{self.tail()}")
                self._grown.wait(_LOOKS_EVERY)
            return answer

    def _read(self) -> None:
        assert self._log.stdout is not None
        for text in self._log.stdout:
            with self._grown:
                self._lines.append(line_of(text.rstrip("\n")))
                self._grown.notify_all()


@contextmanager
def followed(namespace: Namespace, pod: str) -> Iterator[Training]:
    """The training of a launcher pod whose container has started."""
    argv = namespace.kubectl.argv("logs", "--follow", "--timestamps", "--container=launcher", pod)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as log:
        try:
            yield Training(namespace, pod, log)
        finally:
            log.kill()
