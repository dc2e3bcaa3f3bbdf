"""`mpirt`, started as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MPIRT = Path(sys.executable).with_name("mpirt")


def mpirt(
    *words: str | Path, stdin: str = "", shell: str = "", program: Path = MPIRT, **environ: str
) -> subprocess.CompletedProcess[str]:
    argv = ["bash", "-c", f'"$0" "$@" {shell}', program, *words] if shell else [program, *words]
    env = {**os.environ, **environ}
    return subprocess.run(argv, check=False, capture_output=True, text=True, input=stdin, timeout=60, env=env)
