"""
Where the console script mpirt-rsh begins: it becomes the agent, a small program that hands the command over.

Owns: the start of the agent, and what takes its place where it can't be executed; see docs/switchboard.md.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from mpirt import agent

_ARCHITECTURES = {"aarch64": "arm64", "x86_64": "amd64"}


def main() -> int:
    """Run one remote command. Returns the code to exit with, where the agent does not take this process over."""
    called, *words = sys.argv
    program = agent.path(_ARCHITECTURES.get(os.uname().machine, ""))
    if program is not None and sys.executable:
        # mpirt/rsh/entry.py: three names below the folder that holds the package.
        root = __file__.rsplit("/", 3)[0]
        # A file system may execute nothing, and a file lack its mode, as some tools unpack it.
        with suppress(OSError):
            os.execve(  # noqa: S606  ours
                program, [called, "--python", sys.executable, root, called, *words], os.environ
            )
    # A process that becomes the agent needs nothing of it.
    from mpirt.rsh.substitute import run  # noqa: PLC0415

    return run(called, words)
