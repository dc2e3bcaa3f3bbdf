"""
Many processes of one user that ask a credential plugin at the same moment.

Owns: forking them, and holding them back until all of them are there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mpirt.kubeapi.access.steps import Deadline
from mpirt.kubeapi.request.exchange import run
from tests.unit.kubeapi.plugins import source


def main(folder: Path, count: int) -> int:
    """Print what each of them is told. Returns how many were told nothing."""
    start, hold = os.pipe()
    children = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            os.close(hold)
            os.read(start, 1)
            os._exit(_ask(folder))
        children.append(pid)
    os.close(hold)
    return sum(os.waitpid(pid, 0)[1] != 0 for pid in children)


def _ask(folder: Path) -> int:
    token = run(source(folder, dict(os.environ)).credentials(Deadline(60.0))).token
    if token is None:
        return 1
    os.write(1, f"{token.reveal()}\n".encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
