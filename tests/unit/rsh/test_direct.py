"""A signal that comes while the program is still being imported ends it, without a traceback."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# The signal comes when a module in the middle of the imports is looked for.
_SIGNALLED = """
import os, signal, sys

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "mpirt.rsh.session.session":
            os.kill(os.getpid(), int(sys.argv[1]))

sys.meta_path.insert(0, Finder)
from mpirt.rsh.direct import main
sys.argv[1:] = []
main()
"""
_IGNORED = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"


def signalled(number: int, before: str = "") -> subprocess.CompletedProcess[str]:
    program = before + _SIGNALLED.replace("sys.argv[1]", str(number), 1)
    return subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_it_ends_the_program_with_the_code_of_a_command_that_it_ends(number: signal.Signals) -> None:
    done = signalled(number)

    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "")


def test_one_that_is_ignored_stays_ignored() -> None:
    done = signalled(signal.SIGINT, _IGNORED)

    assert done.returncode == 240
    assert done.stderr == "mpirt-rsh: no host; the form is: mpirt-rsh [options] HOST COMMAND...\n"
