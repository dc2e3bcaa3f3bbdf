"""
What the launcher's commands came to, and its account of it (mpirt/account.py).

Owns: which commands belong together, and what is told of them. A launcher may start its commands anew when some of
them have failed: then only the last ones count. They are its last run: a run begins with a command that finds no
other one, or only such as are about to end.

Not everything that is over is settled by that. mpirun of Open MPI 5 (PRRTE up to 3.0.14) ends with 0 when it loses
a daemon, and takes its agents with it before these know. So a launcher that goes on may not know either: such a
daemon's container must still be there when it is seen again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from mpirt import account, names, podobjects
from mpirt.account import Account, Lost
from mpirt.errors import ExitCode
from mpirt.processes import age
from mpirt.rsh.pod.facts import Container
from mpirt.rsh.switchboard.log import complain

_OWN_CODES = range(ExitCode.USAGE, ExitCode.NOT_READY + 1)
_INIT = 1


class Ledger:
    """The account of all commands. Without a file for it nothing is told."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._written = ""
        self._launched = ""
        self._waits = self._has_succeeded = False
        # Another switchboard may have known of commands whose agents are gone.
        self._is_whole = self._is_settled = False
        self.is_again = False
        """Whether there was a run before this one."""
        # Of this run: who has failed, who can't be heard, and in which containers the commands ran, by pod.
        self._lost: dict[str, Lost] = {}
        self._silent: dict[object, str] = {}
        self._used: dict[str, dict[object, str]] = {}
        self._younger: dict[str, str] = {}
        # Of all runs: in which containers the first commands ran, and what mpirun may not have told of.
        self._first: dict[str, str] = {}
        self._doubtful: dict[str, str] = {}
        self._lost_for_good: dict[str, Lost] = {}

    def open(self, environ: Mapping[str, str], *, is_resumed: bool) -> None:
        """A command has come, maybe from a switchboard that was killed."""
        self._is_whole = self._is_whole and not is_resumed
        path = environ.get(names.ACCOUNT_VARIABLE, "")
        if self._path is not None or not path or not Path(path).is_file():
            return
        self._path, self._waits = Path(path), bool(environ.get(names.WAIT_VARIABLE))
        # Kubernetes writes times in UTC, without fractions of a second: so they can be compared as they are.
        self._launched = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - age(_INIT)))
        before = account.read(self._text())
        self._written = account.write(before)
        if is_resumed:
            self._lost = {one.pod: one for one in before.lost}

    def begin_run(self) -> None:
        """A command has come, and those before it are over: the launcher has seen how they ended."""
        if self._path is None:
            return
        self.is_again = self.is_again or bool(self._used or self._lost)
        for told in (self._lost, self._silent, self._used, self._younger):
            told.clear()
        self._is_whole, self._is_settled = True, False
        self._write()

    def seen(self, who: object, pod: str, container: Container, *, is_first: bool) -> None:
        """A command's pod is seen; `is_first`: what was seen before was older than the command."""
        if self._path is None:
            return
        identity, used = podobjects.shortened_identity(container.identity), self._used.setdefault(pod, {})
        # Whatever comes later is another container than the command's.
        if not identity or (who in used and not is_first):
            return
        used[who] = identity
        self._first.setdefault(pod, identity)
        if self._doubtful.get(pod, identity) != identity:
            self._lost_for_good.setdefault(pod, _another(pod))
        self._younger.pop(pod, None)
        if len(set(used.values())) > 1:
            self._lost[pod] = _another(pod)
        elif container.begun >= self._launched:
            self._younger[pod] = identity
        self._write()

    def unseen(self, who: object, pod: str) -> None:
        """A command came too early: what it has seen of its pod is not the container that it will run in."""
        identity = self._used.get(pod, {}).pop(who, None)
        if identity is not None and not self._used[pod]:
            self._first.pop(pod, None)
            self._younger.pop(pod, None)

    def heard(self, who: object, pod: str, *, is_silent: bool) -> None:
        """
        The connection to a command's pod is lost, or there again.

        Written at once: what has ended that may end the launcher, too.
        """
        if self._path is None or is_silent == (who in self._silent):
            return
        if is_silent:
            self._silent[who] = pod
        else:
            del self._silent[who]
        self._write()

    def ended(self, pod: str, code: int, why: str, *, is_left: bool) -> bool:
        """
        A command has ended, and mpirt-rsh has said why; without a reason, by itself. `is_left`: see left().

        Return whether it counts as lost.
        """
        if self._path is None or not why or code not in _OWN_CODES:
            return False
        lost = self._lost_for_good if is_left else self._lost
        lost[pod] = Lost(pod, code, why)
        self._write()
        return True

    def left(self, who: object, pod: str) -> None:
        """The launcher of this daemon of PRRTE is gone, and the daemon's end is not known yet."""
        identity = self._used.get(pod, {}).get(who)
        if identity is not None:
            self._doubtful[pod] = identity

    def settle(self) -> None:
        """The launcher has ended with 0, and all is known that will be of how its commands have ended."""
        self._has_succeeded, self._is_settled = True, self._is_whole and not self._silent
        self._write()

    def _write(self) -> None:
        lost = {**self._lost, **self._lost_for_good}
        silent = tuple(dict.fromkeys(self._silent.values()))
        lines = account.write(Account(tuple(lost.values()), silent, self._again(), is_settled=self._is_settled))
        if lines == self._written or self._path is None:
            return
        self._written = lines
        try:
            _replace(self._path, (account.of_others(self._text()) + lines).encode())
        except OSError as error:
            complain(f"mpirt-switchboard: the account can't be written: {error}\n")

    def _again(self) -> Mapping[str, str]:
        """
        Where commands wait for their workers, all of these may be younger than the launcher.

        As long as none is another than at first, that is nothing to tell: with an account there would be no last
        lines of a launcher that fails.
        """
        others = {pod: identity for pod, identity in self._younger.items() if self._first[pod] != identity}
        # There is room for some: those count that have taken another's place.
        return {**others, **self._younger} if self._has_succeeded or not self._waits else others

    def _text(self) -> str:
        try:
            return "" if self._path is None else self._path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


def _replace(path: Path, data: bytes) -> None:
    """Write a file anew. Who reads it in the midst of that, or if that is our end, finds the new lines first."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(descriptor, data, 0)
        os.ftruncate(descriptor, len(data))
    finally:
        os.close(descriptor)


def _another(pod: str) -> Lost:
    return Lost(pod, ExitCode.CONTAINER_DIED, f"the container of pod {pod} is another one than before")
