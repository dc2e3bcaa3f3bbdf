"""
What a module imports, as a fresh interpreter tells it.

Owns: that interpreter, and what of the standard library a fast path may load.
"""

from __future__ import annotations

import subprocess
import sys

# In a fresh interpreter without site-packages' start-up code, which may import anything. It imports nothing.
REPORT = """
import sys
sys.path[:0] = sys.argv[2].split("\\n")
before = set(sys.modules)
for name in sys.argv[1].split():
    __import__(name)
print("\\n".join(set(sys.modules) - before))
"""

# What every Python has loaded that was not started with -S.
ALWAYS = {"__future__", "_collections_abc", "_stat", "genericpath", "os", "os.path", "posixpath", "stat"}


PATHS = "\n".join(sys.path)


def imported_by(*modules: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-IS", "-c", REPORT, " ".join(modules), PATHS],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return set(done.stdout.split())
