"""
Where the console script mpirt-discover begins: it becomes the agent's program, which asks the switchboard.

Owns: nothing else. What is imported here is what every call in an installation by pip pays for.
"""

from __future__ import annotations

from mpirt import agent


def main() -> int:
    """Print the hosts. Ends the process."""
    agent.become(agent.DISCOVER)
    from mpirt.discover.main import main as run  # noqa: PLC0415  most calls never get here

    return run()
