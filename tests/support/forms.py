"""
The two forms of mpirt-rsh, in each of which its tests run it.

Owns: how a test asks for one, and that a switchboard has had nothing to complain of.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

import pytest

SWITCHBOARD = "MPIRT_SWITCHBOARD"
_WELCOME = struct.Struct("<I12xII")


class Form(Enum):
    """How a command is run."""

    DIRECT = "direct"
    SWITCHBOARD = "switchboard"

    def __str__(self) -> str:
        return self.value

    def setting(self, folder: Path) -> str:
        """The value of the variable."""
        return "off" if self is Form.DIRECT else str(folder)


def place(folder: Path) -> Iterator[Path]:
    """A folder for a switchboard. At the end its log must be empty: what it writes there are defects."""
    folder.chmod(0o700)
    yield folder
    log = folder / "log"
    assert not log.exists() or log.read_text() == ""


@contextmanager
def connection(folder: Path) -> Iterator[int]:
    """A connection to the switchboard that listens there, which has accepted it; its process id."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(folder / "socket"))
        _, _, pid = _WELCOME.unpack(client.recv(_WELCOME.size, socket.MSG_WAITALL))
        yield int(pid)


def switchboard(folder: Path) -> int:
    """The process id of the switchboard that listens there."""
    with connection(folder) as pid:
        return pid


@contextmanager
def chosen(form: Form, folder: Path) -> Iterator[Form]:
    """Have commands of this process run in that form."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SWITCHBOARD, form.setting(folder))
        yield form
