"""
The keeper's built files: one static program for each architecture of worker nodes.

Owns: what they are called, and reading them. images/keeper has their source, and `make programs` builds them into
this folder. An installation without them runs commands only in pods that have a keeper: the workers of a job.
"""

from __future__ import annotations

# The number of the frames that it speaks (docs/keeper.md). It is part of a file's name, so that an agent never
# starts a keeper that speaks others.
PROTOCOL = 1

ARCHITECTURES = ("amd64", "arm64", "ppc64le", "riscv64", "s390x")


def file_name(architecture: str) -> str:
    """What the file for an architecture is called, here and wherever it is delivered to."""
    return f"keeper-{PROTOCOL}-{architecture}"


def read(architecture: str) -> bytes | None:
    """The program for an architecture; None if there is none for it, or not in this installation."""
    if architecture not in ARCHITECTURES:
        return None
    folder = __file__.rpartition("/")[0]
    try:
        with open(f"{folder}/{file_name(architecture)}", "rb") as file:
            return file.read()
    except OSError:
        return None
