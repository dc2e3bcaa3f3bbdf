"""
The agent's built files: one static program for each architecture of launchers.

Owns: what they are called, where they are, and how a console script becomes one of them. images/agent has their
source, and `make programs` builds them into this folder. An installation works without them:
mpirt/rsh/substitute.py and mpirt/discover/main.py then do their work.
"""

from __future__ import annotations

import os
import sys

# The number of the frames that it speaks (docs/switchboard.md). It is part of a file's name.
PROTOCOL = 1

ARCHITECTURES = ("amd64", "arm64")
_MACHINES = {"aarch64": "arm64", "x86_64": "amd64"}

# Which program it is to be. docs/switchboard.md has the words that follow.
RSH, DISCOVER = "--python", "--discover"


def file_name(architecture: str) -> str:
    """What the file for an architecture is called."""
    return f"agent-{PROTOCOL}-{architecture}"


def path(architecture: str) -> str | None:
    """The program for an architecture; None if there is none for it, or not in this installation."""
    if architecture not in ARCHITECTURES:
        return None
    file = f"{__file__.rpartition('/')[0]}/{file_name(architecture)}"
    return file if os.path.exists(file) else None


def become(program: str) -> None:
    """Become the built file. Returns where there is none, or none that can be executed."""
    file = path(_MACHINES.get(os.uname().machine, ""))
    if file is None or not sys.executable:
        return
    called, *words = sys.argv
    # mpirt/agent/__init__.py: three names below the folder that holds the package.
    root = __file__.rsplit("/", 3)[0]
    try:
        os.execve(file, [called, program, sys.executable, root, called, *words], os.environ)  # noqa: S606  ours
    except OSError:
        # A file system that executes nothing; a file without its mode, as some tools unpack it.
        return
