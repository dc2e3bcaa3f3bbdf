"""
Where the direct form of mpirt-rsh begins: one remote command in a Python process of its own.

Owns: the first milliseconds, while everything else is still being imported. Garbage isn't looked for then. And a
signal has nothing to do but to leave, with the code of a command that it ends and no traceback, for nothing has
been contacted yet.
"""

from __future__ import annotations

import gc
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    # The core of it. The module itself, with the enumerations that it makes, takes 4 ms to import, in which Ctrl-C
    # would end in a traceback.
    import _signal as signal

_ENDS_US = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    """Run one remote command. Ends the process."""
    for number in _ENDS_US:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _leave)
    # This is what takes the time. None of it is ever garbage, so there is no use in looking for that among it.
    gc.disable()
    from mpirt.rsh.main import main as run  # noqa: PLC0415

    gc.freeze()
    gc.enable()
    return run()


def _leave(number: int, _frame: object) -> None:
    os._exit(128 + number)
