"""
What worker pods say when they are told to end: the processes that they have then.

Owns: the command of such a worker, and following its log until the pod is gone.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from testbed.ground import Namespace
from testbed.kube.wait import by_the_clock
from tests.e2e.elastic.steps import line_of

# On TERM it lists all processes, one per line, and ends.
_SCRIPT = r"""
told() {
    for p in /proc/[0-9]*; do echo "alive: $(tr '\0' ' ' <"$p/cmdline" 2>/dev/null)"; done
    exit 0
}
trap told TERM
while :; do sleep 3600 & wait $!; done
"""
COMMAND = ("/bin/sh", "-c", _SCRIPT)

_ENDS_WITHIN = 60


class LastWords:
    """What one worker has said at its end."""

    def __init__(self, log: subprocess.Popen[str]) -> None:
        self.processes: list[str] = []
        self.at = 0.0
        """When its termination began."""
        self._log = log
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def join(self) -> None:
        self._reader.join(by_the_clock(_ENDS_WITHIN))

    def _read(self) -> None:
        assert self._log.stdout is not None
        for text in self._log.stdout:
            line = line_of(text.rstrip("\n"))
            if line.text.startswith("alive: "):
                self.at = self.at or line.at
                self.processes.append(line.text.removeprefix("alive: "))


@contextmanager
def following(namespace: Namespace, workers: Sequence[str]) -> Iterator[dict[str, LastWords]]:
    """Follow the logs of these workers, until they are gone or the block is left."""
    with ExitStack() as stack:
        words = {}
        for worker in workers:
            argv = namespace.kubectl.argv("logs", "--follow", "--timestamps", worker)
            log = stack.enter_context(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
            stack.callback(log.kill)
            words[worker] = LastWords(log)
        yield words
        for one in words.values():
            one.join()
