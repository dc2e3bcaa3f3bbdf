"""The rules of the C sources: short functions, and modules that depend on each other in one direction."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

IMAGES = Path(__file__).resolve().parents[3] / "images"
SOURCES = sorted((*IMAGES.glob("*/*.c"), *IMAGES.glob("*/*.h")))
LONGEST_FILE, LONGEST_FUNCTION = 400, 40
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_DECLARED = re.compile(r"(\w+)\([^{};]*\);$", re.MULTILINE)
_DEFINED = re.compile(r"^(?!static)\w[\w *]*?(\w+)\([^;{}]*\)\n\{", re.MULTILINE)


def calls(folder: str) -> dict[str, set[str]]:
    """Which modules of a program each of its modules calls: functions that its header declares."""
    declared = set(_DECLARED.findall((IMAGES / folder / f"{folder}.h").read_text()))
    texts = {path.stem: _COMMENT.sub("", path.read_text()) for path in (IMAGES / folder).glob("*.c")}
    homes = {name: stem for stem, text in texts.items() for name in _DEFINED.findall(text) if name in declared}
    assert set(homes) == declared
    return {
        stem: {homes[word] for word in re.findall(r"\w+", text) if word in homes} - {stem}
        for stem, text in texts.items()
    }


@pytest.mark.parametrize("folder", ["common", "keeper"])
def test_modules_depend_on_each_other_in_one_direction(folder: str) -> None:
    order = list(TopologicalSorter(calls(folder)).static_order())

    assert len(order) == len(set(order)) > 1


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_files_and_functions_are_short(path: Path) -> None:
    lines = path.read_text().splitlines()
    begins = [number for number, line in enumerate(lines) if line == "{"]
    ends = [next(at for at in range(begin, len(lines)) if lines[at] == "}") for begin in begins]

    assert len(lines) <= LONGEST_FILE
    assert all(end - begin + 2 <= LONGEST_FUNCTION for begin, end in zip(begins, ends, strict=True))
