"""A program that runs as in a pod, in an interpreter that tells what was imported. Owns: how it is looked at."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.imports import PATHS

# The service account lies elsewhere here than in a pod.
_RUN = """
import sys
sys.path[:0] = sys.argv[1].split("\\n")
from mpirt.kubeapi.access import endpoint
endpoint.find_endpoint.__kwdefaults__["service_account"] = sys.argv[2]
program = __import__(sys.argv[3], fromlist=["main"])
before = set(sys.modules)
code = program.main(sys.argv[4:])
print(code, *(set(sys.modules) - before))
"""


def imported_by_a_run(
    module: str, *words: str, account: Path, env: Mapping[str, str]
) -> tuple[list[str], int, set[str]]:
    """The lines that it printed, its code, and what it imported on the way."""
    done = subprocess.run(
        [sys.executable, "-IS", "-c", _RUN, PATHS, str(account), module, *words],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        env=env,
        stdin=subprocess.DEVNULL,
    )
    *lines, last = done.stdout.splitlines()
    code, *loaded = last.split()
    return lines, int(code), set(loaded)
