"""
Where the console script mpirt-rsh begins: it becomes the agent, a small program that hands the command over.

Owns: whether it does. What is imported here is what every remote command of an installation by pip pays for before
the agent runs. docs/switchboard.md has the words with which the agent is started.
"""

from __future__ import annotations

import os
import sys

_SWITCHBOARD = "MPIRT_SWITCHBOARD"
_DIRECT = ("--direct", "--help", "--version", "-V")
_ARCHITECTURES = {"aarch64": "arm64", "x86_64": "amd64"}


def main() -> int:
    """Run one remote command. Ends the process."""
    if os.environ.get(_SWITCHBOARD) != "off" and not (len(sys.argv) > 1 and sys.argv[1] in _DIRECT):
        _become_the_agent()
    from mpirt.rsh.direct import main as run  # noqa: PLC0415  most commands never get here

    return run()


def _become_the_agent() -> None:
    """Returns where there is no agent, or none that can be executed."""
    from mpirt import agent  # noqa: PLC0415  the direct form needs none of it

    program = agent.path(_ARCHITECTURES.get(os.uname().machine, ""))
    if program is None or not sys.executable:
        return
    called, *words = sys.argv
    # mpirt/rsh/entry.py: three names below the folder that holds the package.
    root = __file__.rsplit("/", 3)[0]
    try:
        os.execve(program, [called, "--python", sys.executable, root, called, *words], os.environ)  # noqa: S606  ours
    except OSError:
        # A file system that executes nothing; a file without its mode, as some tools unpack it.
        return
