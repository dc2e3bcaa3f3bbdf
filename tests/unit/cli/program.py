"""`mpirt`, started as a process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MPIRT = Path(sys.executable).with_name("mpirt")


def mpirt(*words: str | Path, stdin: str = "", shell: str = "") -> subprocess.CompletedProcess[str]:
    argv = ["bash", "-c", f'"$0" "$@" {shell}', MPIRT, *words] if shell else [MPIRT, *words]
    return subprocess.run(argv, check=False, capture_output=True, text=True, input=stdin, timeout=30)
