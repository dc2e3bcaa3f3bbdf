"""A signal that comes while the program is still being imported ends it, without a traceback."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.support.imports import PATHS

# One of the first modules, and one in the middle of the imports.
FIRST, LATER = "enum", "mpirt.rsh.session.session"
# The signal comes when a module is looked for. The interpreter has imported nothing else.
_SIGNALLED = """
import os, sys
sys.path[:0] = sys.argv[1].split("\\n")
at, number = sys.argv[2], int(sys.argv[3])

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == at:
            os.kill(os.getpid(), number)

sys.meta_path.insert(0, Finder)
from mpirt.rsh.direct import main
sys.argv[1:] = []
main()
"""
_IGNORED = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"


def signalled(at: str, number: int, before: str = "") -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-IS", "-c", before + _SIGNALLED, PATHS, at, str(number)]
    return subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("at", [FIRST, LATER])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_it_ends_the_program_with_the_code_of_a_command_that_it_ends(at: str, number: signal.Signals) -> None:
    done = signalled(at, number)

    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "")


def test_one_that_is_ignored_stays_ignored() -> None:
    done = signalled(LATER, signal.SIGINT, _IGNORED)

    assert done.returncode == 240
    assert done.stderr == "mpirt-rsh: no host; the form is: mpirt-rsh [options] HOST COMMAND...\n"
