"""The fleet as a process: serves until its stdin is closed, or TERM."""

from __future__ import annotations

import argparse
import gc
import os
import resource
import secrets
import signal
import sys
from pathlib import Path

from tests.apiserver import kubeconfig
from tests.apiserver.certificates import Authority
from tests.apiserver.fleet.server import Fleet


def main() -> None:
    words = argparse.ArgumentParser(prog="python -m tests.apiserver.fleet", description=__doc__)
    words.add_argument("--pods", type=int, default=1000, help="How many workers there are.")
    words.add_argument("--folder", type=Path, required=True, help="Where kubeconfig and ca.crt are written.")
    given = words.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    authority, token = Authority(), secrets.token_hex(16)
    fleet = Fleet(authority, given.pods, token)
    print(kubeconfig.write(given.folder, fleet.url, {"token": token}, ca=authority.ca), flush=True)
    # None of what there is by now is ever garbage.
    gc.freeze()
    fleet.serve(until=_end())


def _end() -> int:
    """A descriptor that can be read when it is time to go."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    return os.dup(sys.stdin.fileno())


if __name__ == "__main__":
    main()
