"""
A pytest plugin that counts how often a function, while it runs, returns to a module of mpirt that it has been in:

    pytest -p tests.support.walks --walk controller/decisions/decide.py:JobPlanner.decide tests/unit/controller

Owns: what a walk is. It begins with the outermost call of that function and ends with it; each call, and each end
of one, that leads into another module is a move. Prints the median walk, and how often it enters which module.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest

PACKAGE = f"{Path(__file__).resolve().parents[2] / 'mpirt'}/"


class Walker:
    """A profiler of the interpreter."""

    def __init__(self, file: str, function: str) -> None:
        self._file, self._function = file, function
        self._begun: FrameType | None = None
        self._module = ""
        self.walks: list[Counter[str]] = []

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and self._begun is None:
            if _module_of(frame) == self._file and frame.f_code.co_qualname == self._function:
                self._begun = frame
                self.walks.append(Counter())
                self._enter(self._file)
        elif event == "call" and self._begun is not None:
            self._enter(_module_of(frame))
        elif event == "return" and frame is self._begun:
            self._begun, self._module = None, ""
        elif event == "return" and self._begun is not None and frame.f_back is not None and _module_of(frame):
            self._enter(_module_of(frame.f_back))

    def _enter(self, module: str) -> None:
        if module and module != self._module:
            self.walks[-1][module] += 1
            self._module = module


def _module_of(frame: FrameType) -> str:
    file = frame.f_code.co_filename
    return file.removeprefix(PACKAGE) if file.startswith(PACKAGE) else ""


def _returns(walk: Counter[str]) -> int:
    return walk.total() - len(walk)


_WALKER = pytest.StashKey[Walker]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that names the function."""
    parser.addoption("--walk", required=True, metavar="FILE:FUNCTION", help="below mpirt/, with its class")


def pytest_configure(config: pytest.Config) -> None:
    """One walker for the whole run."""
    file, _, function = config.getoption("--walk").partition(":")
    config.stash[_WALKER] = Walker(file, function)


def pytest_runtest_call(item: pytest.Item) -> None:
    """What tests arrange before is not followed."""
    sys.setprofile(item.config.stash[_WALKER])


def pytest_runtest_teardown() -> None:
    """The end of a test."""
    sys.setprofile(None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the median."""
    walks = sorted(config.stash[_WALKER].walks, key=_returns)
    if not walks:
        terminalreporter.write_line("walks: none, the function was not called")
        return
    median = walks[len(walks) // 2]
    terminalreporter.write_line(
        f"walks: {len(walks)}; the median one returns {_returns(median)} times to {len(median)} modules"
    )
    for module, entries in median.most_common():
        terminalreporter.write_line(f"{entries:6} {module}")
