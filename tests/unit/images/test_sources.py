"""The rules of the C sources: short functions, and modules that depend on each other in one direction."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

IMAGES = Path(__file__).resolve().parents[3] / "images"
SOURCES = sorted((*IMAGES.glob("*/*.c"), *IMAGES.glob("*/*.h")))
LONGEST_FILE, LONGEST_FUNCTION = 400, 40
_INCLUDE = re.compile(r'#include "([^"]+)"')


def included(folder: str) -> dict[str, set[str]]:
    """Which modules of a program each of its modules includes, in its header or its source."""
    found: dict[str, set[str]] = {}
    for path in (IMAGES / folder).glob("*.[ch]"):
        names = {Path(name).stem for name in _INCLUDE.findall(path.read_text()) if not name.startswith("..")}
        found.setdefault(path.stem, set()).update(names - {path.stem})
    return found


@pytest.mark.parametrize("folder", ["common", "keeper"])
def test_modules_depend_on_each_other_in_one_direction(folder: str) -> None:
    order = list(TopologicalSorter(included(folder)).static_order())

    assert len(order) == len(set(order)) > 1


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_files_and_functions_are_short(path: Path) -> None:
    lines = path.read_text().splitlines()
    begins = [number for number, line in enumerate(lines) if line == "{"]
    ends = [next(at for at in range(begin, len(lines)) if lines[at] == "}") for begin in begins]

    assert len(lines) <= LONGEST_FILE
    assert all(end - begin + 2 <= LONGEST_FUNCTION for begin, end in zip(begins, ends, strict=True))
