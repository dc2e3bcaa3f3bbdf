"""
The agent's built files: one static program for each architecture of launchers.

Owns: what they are called, and where they are. images/agent has their source, and `make programs` builds them into
this folder. An installation works without them: mpirt/rsh/substitute.py then does the agent's work.
"""

from __future__ import annotations

import os

# The number of the frames that it speaks (docs/switchboard.md). It is part of a file's name.
PROTOCOL = 1

ARCHITECTURES = ("amd64", "arm64")


def file_name(architecture: str) -> str:
    """What the file for an architecture is called."""
    return f"agent-{PROTOCOL}-{architecture}"


def path(architecture: str) -> str | None:
    """The program for an architecture; None if there is none for it, or not in this installation."""
    if architecture not in ARCHITECTURES:
        return None
    file = f"{__file__.rpartition('/')[0]}/{file_name(architecture)}"
    return file if os.path.exists(file) else None
