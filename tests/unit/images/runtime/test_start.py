"""How the runtime folder's Python starts, and what it and the C program agree on."""

from __future__ import annotations

import re

import pytest

from images import build
from images.runtime import start
from images.runtime.start import restore
from mpirt import agent, names
from mpirt.errors import ExitCode
from tests.unit.layers import PROJECT


@pytest.mark.parametrize(
    ("started_with", "seen"),
    [
        pytest.param({"LC_ALL": "C", "PATH": "/bin"}, {"PATH": "/bin"}, id="nothing was held"),
        pytest.param(
            {"LC_ALL": "C", "MPIRT_HELD_LC_ALL": "de_DE.UTF-8"}, {"LC_ALL": "de_DE.UTF-8"}, id="the locale"
        ),
        pytest.param(
            {"LC_ALL": "C", "MPIRT_HELD_LD_PRELOAD": "libx.so", "MPIRT_HELD_LD_LIBRARY_PATH": ""},
            {"LD_PRELOAD": "libx.so", "LD_LIBRARY_PATH": ""},
            id="the loader's variables",
        ),
    ],
)
def test_held_variables_have_their_names_back(started_with: dict[str, str], seen: dict[str, str]) -> None:
    restore(started_with)

    assert started_with == seen


SOURCE = {path.name: path.read_text(encoding="utf-8") for path in (PROJECT / "images/agent").glob("*.[ch]")}


def test_a_program_that_stands_alone_looks_for_the_folder_where_the_others_put_it() -> None:
    assert f'#define VARIABLE "{names.RUNTIME_VARIABLE}"\n' in SOURCE["launch.c"]
    assert f'#define USUAL_PLACE "{names.RUNTIME_PATH}"\n' in SOURCE["launch.c"]


def test_the_variables_that_are_held_are_given_back() -> None:
    held = {"LC_ALL": "C", "MPIRT_HELD_LC_ALL": "POSIX"}

    start.restore(held)

    assert held == {"LC_ALL": "POSIX"}
    assert '#define HELD "MPIRT_HELD_"\n' in SOURCE["launch.c"]
    assert '#define LOCALE "LC_ALL=C"\n' in SOURCE["launch.c"]


def test_its_own_codes_are_those_of_all_programs() -> None:
    assert re.search(rf"\bFAILED = {ExitCode.INTERNAL:d},", SOURCE["agent.h"])
    assert re.search(rf"\bLOST = {ExitCode.CONNECTION_LOST:d},", SOURCE["agent.h"])


def test_the_agent_is_built_under_the_names_by_which_it_is_looked_for() -> None:
    built = {one: build.file_name("agent", one) for one in build.ARCHITECTURES["agent"]}

    assert built == {one: agent.file_name(one) for one in agent.ARCHITECTURES}
    assert re.search(rf"\bPROTOCOL = {agent.PROTOCOL},", SOURCE["agent.h"])
