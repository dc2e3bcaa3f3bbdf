"""
Where the console script mpirt-rsh begins: it becomes the agent, a small program that hands the command over.

Owns: whether it does. What is imported here is what every remote command of an installation by pip pays for before
the agent runs. docs/switchboard.md has the words with which the agent is started.
"""

from __future__ import annotations

import os
import sys

from mpirt import agent

_SWITCHBOARD = "MPIRT_SWITCHBOARD"
_DIRECT = ("--direct", "--help", "--version", "-V")


def main() -> int:
    """Run one remote command. Ends the process."""
    if os.environ.get(_SWITCHBOARD) != "off" and not (len(sys.argv) > 1 and sys.argv[1] in _DIRECT):
        agent.become(agent.RSH)
    from mpirt.rsh.direct import main as run  # noqa: PLC0415  most commands never get here

    return run()
