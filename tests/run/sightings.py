"""
The flaky tests that have been seen, as the repository keeps them: which, when, out of which cause.

A test has one second chance in its life. Whoever sees it use that writes it down here, and then mends it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import date
from pathlib import Path

FILE = Path("tests/flaky.toml")


@dataclass(frozen=True)
class Sighting:
    """A test that failed, and passed when it was run once more."""

    test: str
    seen: date
    cause: str

    def __post_init__(self) -> None:
        if not self.cause:
            raise ValueError(f"{FILE} gives no cause for {self.test}")


def read() -> dict[str, Sighting]:
    """By the test's name."""
    try:
        found = tomllib.loads(FILE.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return {entry["test"]: Sighting(entry["test"], entry["seen"], entry["cause"]) for entry in found["flaky"]}
