"""
What one pytest process did, as data.

Owns: the lines of JSON that the recorder writes, and the value that they are read into. Knows neither pytest nor
files. A line is written as soon as something has happened, so that a crash leaves what was known until then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

# Exit codes of pytest.
OK, TESTS_FAILED, NO_TESTS = 0, 1, 5


@dataclass(frozen=True, slots=True)
class Phase:
    """The setup, the call or the teardown of a test."""

    test: str
    when: str
    outcome: str
    """passed, failed or skipped."""
    seconds: float
    text: str = ""
    """Why it failed, with everything that was captured."""
    cause: str = ""
    """Where the setup failed, and by which error."""


@dataclass(frozen=True, slots=True)
class Record:
    """One pytest process: what it was to run, and what it ran."""

    name: str
    options: tuple[str, ...] = ()
    """Its command line, without the files and folders to test."""
    selected: tuple[str, ...] = ()
    phases: tuple[Phase, ...] = ()
    errors: tuple[str, ...] = ()
    """What went wrong outside of tests: collection errors, crashed workers, internal errors."""
    code: int | None = None
    """Its exit code; None if it never came to its end."""
    seconds: float = 0.0

    def problem(self) -> str:
        """Why its outcomes don't count, in one line; empty if every selected test has come to its end."""
        unfinished = set(self.selected) - {phase.test for phase in self.phases if phase.when == "teardown"}
        if self.errors:
            return f"pytest {self.name}: {self.errors[0].strip().splitlines()[0]}"
        if self.code is None:
            return f"pytest {self.name} was killed or crashed"
        if unfinished:
            return f"pytest {self.name} stopped before the end of {len(unfinished)} of {len(self.selected)} tests"
        if self.code not in (OK, TESTS_FAILED, NO_TESTS):
            return f"pytest {self.name} ended with {self.code}"
        return ""


def line(kind: str, **fields: object) -> str:
    """What has happened: begun (name, options), selected (tests), phase, error (text) or ended (code, seconds)."""
    return json.dumps({"kind": kind, **fields}) + "\n"


def read(lines: Iterable[str]) -> Record:
    """The record of these lines. The last one may be torn: its writer was killed."""
    name, options, tests = "", tuple[str, ...](), dict[str, None]()
    phases, errors = list[Phase](), list[str]()
    code, seconds = None, 0.0
    with suppress(json.JSONDecodeError):
        for fields in map(json.loads, lines):
            match fields.pop("kind"):
                case "begun":
                    name, options = fields["name"], tuple(fields["options"])
                case "selected":
                    tests |= dict.fromkeys(fields["tests"])
                case "phase":
                    phases.append(Phase(**fields))
                case "error":
                    errors.append(fields["text"])
                case "ended":
                    code, seconds = fields["code"], fields["seconds"]
    return Record(name, options, tuple(tests), tuple(phases), tuple(errors), code, seconds)
