"""What all layers of tests have in common."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """
    Give the programs under test the signals that a terminal gives them.

    A run under nohup, or in the background of a script, ignores some of them, and what is ignored is inherited.
    """
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
