"""
Child processes that never outlive who started them.

The kernel kills each when its parent's thread ends, however that ends. So they are started by a thread that lives
as long as they shall: the main thread, or one that waits for them.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from testbed.kube.commandlines import COLLECTED_SELDOM
from testbed.kube.wait import until

_ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL")
_TERM_GRACE = 8.0
_KILL_GRACE = 5.0


@dataclass(frozen=True, eq=False)
class Child:
    """One process, and the file that holds what it says."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def is_over(self) -> bool:
        return self.process.poll() is not None

    def kill(self) -> None:
        """End it by SIGKILL; returns when nothing of it is left."""
        self.process.kill()
        self.process.wait(_KILL_GRACE)

    def freeze(self) -> None:
        """Stop it by SIGSTOP; returns when it stands still."""
        self.process.send_signal(signal.SIGSTOP)
        until(self._stands_still, within=_KILL_GRACE, what=f"{self.log.stem} to stand still")

    def thaw(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def ask_to_end(self) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
            # Who is frozen would take its TERM only when thawed.
            self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """TERM, then KILL."""
        self.ask_to_end()
        try:
            self.process.wait(_TERM_GRACE)
        except subprocess.TimeoutExpired:
            self.kill()

    def _stands_still(self) -> bool:
        tasks = (path.read_text() for path in Path("/proc", str(self.process.pid), "task").glob("*/stat"))
        return all(text.rpartition(")")[2].split()[0] == "T" for text in tasks)


def start(argv: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> Child:
    """Start a program; what it says is added to the log."""
    with log.open("ab") as said:
        process = subprocess.Popen(
            [*_ENDS_WITH_US, *argv],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**os.environ, **COLLECTED_SELDOM, **(environment or {})},
            # A Ctrl-C is for pytest, which has still to ask this plane for something when it tidies up.
            start_new_session=True,
        )
    return Child(process, log)
