"""Names that the launcher, written in C, has in common with others."""

from __future__ import annotations

from images.runtime import start
from mpirt import names
from mpirt.errors import ExitCode
from tests.unit.layers import PROJECT

LAUNCHER = (PROJECT / "images/runtime/launcher.c").read_text(encoding="utf-8")


def test_a_program_that_stands_alone_looks_for_the_folder_where_the_others_put_it() -> None:
    assert f'#define VARIABLE "{names.RUNTIME_VARIABLE}"\n' in LAUNCHER
    assert f'#define USUAL_PLACE "{names.RUNTIME_PATH}"\n' in LAUNCHER


def test_what_is_held_is_what_is_given_back() -> None:
    held = {"LC_ALL": "C", "MPIRT_HELD_LC_ALL": "POSIX"}

    start.restore(held)

    assert held == {"LC_ALL": "POSIX"}
    assert '#define HELD "MPIRT_HELD_"\n' in LAUNCHER
    assert '#define LOCALE "LC_ALL=C"\n' in LAUNCHER


def test_a_failure_of_its_own_has_the_code_for_it() -> None:
    assert f"#define FAILED {ExitCode.INTERNAL:d}\n" in LAUNCHER
