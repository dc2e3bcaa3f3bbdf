"""The demo's command line: what variables tell it, the story from its beginning to its end, and how it fails."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from demo import controller, job, place
from testbed.kube.errors import ClusterError

_DESCRIPTION = """\
Runs examples/pi with a controller of its own: on the test cluster, which is started if need be (root), or on a
cluster of yours. All of it is in a namespace of the demo's own, which is removed at the end.

Variables, for make or in the environment:
  CLUSTER=current     the cluster of kubectl's current context; nothing is installed on this machine
  REGISTRY=PREFIX     where its images are: PREFIX/controller:demo, PREFIX/runtime:demo and PREFIX/pi:demo
  CONTROLLER_IMAGE, RUNTIME_IMAGE, PI_IMAGE
                      images by other names
  KEEP=yes            leave the namespace, to look around in it
"""
_INTERRUPTED = 128
_NO = frozenset({"", "0", "false", "no"})


def main() -> int:
    _parser().parse_args()
    try:
        with _signals():
            return _tell(time.monotonic())
    except place.Unsaid as error:
        print(error)
        return 2
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except _Interrupted as error:
        print("interrupted", file=sys.stderr)
        return _INTERRUPTED + error.number
    except BrokenPipeError:
        # Who reads has seen enough, as head has. Python would complain once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _INTERRUPTED + signal.SIGPIPE


def _tell(begun: float) -> int:
    where = place.find(os.environ)
    with controller.installed(where, keep=os.environ.get("KEEP", "no") not in _NO) as kubectl:
        print("\n$ kubectl apply -f examples/pi/pi.yaml", flush=True)
        job.submit(kubectl, where.images.pi)
        lines = job.follow(kubectl)
        job.wait_for_end(kubectl)
        job.show(kubectl)
        ranks = job.where(kubectl, lines)
        print(job.rendered(ranks))
    if not ranks:
        raise ClusterError("no rank has said where it runs", remedy="see the launcher's log above")
    nodes = {rank.node for rank in ranks}
    print(f"{len(ranks)} ranks on {len(nodes)} nodes, in {time.monotonic() - begun:.0f} s from the start.")
    return 0


class _Interrupted(BaseException):
    """A signal asks for the end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def _signals() -> Iterator[None]:
    """The first signal ends the story, with all that has to be put away; a second one does not end that."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(number: int, _frame: FrameType | None) -> NoReturn:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise _Interrupted(number)

    for each in numbers:
        signal.signal(each, interrupt)
    yield


def _parser() -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog="python -m demo", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )


if __name__ == "__main__":
    sys.exit(main())
