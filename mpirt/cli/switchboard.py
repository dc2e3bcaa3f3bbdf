"""
The program that an agent starts as the switchboard: mpirt/rsh's switchboard, and mpirt/discover, which answers the
calls of mpirt-discover from the pods that the switchboard watches.

Owns: which calls are answered here. All others are refused, with the reason: mpirt-discover then asks the API
server itself, reports what is wrong with its words, and waits where that is asked for.
"""

from __future__ import annotations

import stat
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mpirt import names
from mpirt.discover.discovery import Found, Pod, read_pod
from mpirt.discover.drivers import call_by
from mpirt.discover.job import job_at_hand, labels_path, own_pod
from mpirt.discover.options import Options, Selection, read_options, wants_text
from mpirt.discover.patience import hosts_among, is_final, remarks
from mpirt.errors import ExitCode, MpirtError
from mpirt.hosts import render
from mpirt.processes import parent
from mpirt.rsh.switchboard import main as switchboard
from mpirt.rsh.switchboard.clusters import Discovery, Question
from mpirt.rsh.switchboard.frames import discovered
from mpirt.rsh.watches.jobpods import NotKnown

if TYPE_CHECKING:
    from mpirt.objects import Body

_FROM_HERE = "pods from the switchboard"


def main(*, idle_seconds: float = switchboard.IDLE_SECONDS) -> int:
    """Serve agents until there have been none for a while."""
    return switchboard.main(HostDiscovery(), idle_seconds=idle_seconds)


class HostDiscovery(Discovery):
    """Answers calls of mpirt-discover."""

    def keep(self, pod: Body) -> Pod:
        return read_pod(pod)

    def question(self, words: Sequence[str], environ: Mapping[str, str], pid: int) -> Question:
        if wants_text(words):
            raise NotKnown("the switchboard knows pods only")
        try:
            options = read_options(words, environ)
            selection = options.selection or _selection_at_hand(environ)
        except MpirtError as error:
            # mpirt-discover says so itself.
            raise NotKnown(str(error)) from error
        if options.wait:
            raise NotKnown("the switchboard does not wait")
        return Question(
            options.namespace, selection.selectors, partial(_answer, options, selection, environ, pid=pid)
        )


def _answer(
    options: Options,
    selection: Selection,
    environ: Mapping[str, str],
    pods: Sequence[Pod],
    namespace: str,
    *,
    pid: int,
) -> bytes:
    """Which hosts one call may use."""
    call = call_by(parent(pid), options, environ)
    said = [_FROM_HERE] if options.verbose else []
    found: Found | MpirtError
    try:
        found = hosts_among(
            [pod for pod in pods if selection.holds(pod)],
            selection,
            namespace=namespace,
            criteria=options.criteria(environ, own_pod(environ)),
            patience=call.patience,
        )
    except MpirtError as error:
        found = error
    if not is_final(found, call.patience):
        raise NotKnown("this call waits for hosts, which the switchboard does not")
    call.is_over()
    if isinstance(found, MpirtError):
        return discovered(found.code, b"", _lines([*said, str(found)]))
    lines = _lines([*said, *remarks(found, call.patience, verbose=options.verbose)])
    return discovered(ExitCode.OK, render(found.hosts, options.form).encode(), lines)


def _selection_at_hand(environ: Mapping[str, str]) -> Selection:
    """The job of the launcher pod, from its labels. Raises NotKnown, UsageError."""
    path = Path(labels_path(environ))
    try:
        is_file = path.is_absolute() and stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        is_file = True
    except OSError:
        is_file = False
    if not is_file:
        # A relative path is another file here, and a pipe is not waited for.
        raise NotKnown(f"{names.LABELS_FILE_VARIABLE}={path} is not a file that the switchboard can read")
    selection = job_at_hand(environ, own_pod(environ))
    if selection is None:
        raise NotKnown("the job stands only in the launcher's own pod")
    return selection


def _lines(lines: Sequence[str]) -> bytes:
    return "".join(f"{names.DISCOVER}: {line}\n" for line in lines).encode("utf-8", "replace")


if __name__ == "__main__":
    sys.exit(main())
