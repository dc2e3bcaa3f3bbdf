"""
Where the console script mpirt-rsh begins: it becomes the agent, a small program that hands the command over.

Owns: what takes the agent's place where it can't be executed; see docs/switchboard.md.
"""

from __future__ import annotations

import sys

from mpirt import agent


def main() -> int:
    """Run one remote command. Returns the code to exit with, where the agent does not take this process over."""
    agent.become(agent.RSH)
    # A process that becomes the agent needs nothing of it.
    from mpirt.rsh.substitute import run  # noqa: PLC0415

    called, *words = sys.argv
    return run(called, words)
