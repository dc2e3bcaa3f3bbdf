"""
Which tests a tier has: those that every change must pass, or a share of the rest. Without a tier, all.

Owns: how a sample is drawn, which tests are about the tests' own tools, how the rest is shared out, and which
slice of it is next. Reads nothing. The same seed draws the same tests, on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby


@dataclass(frozen=True)
class Tool:
    """Something that tests are made with. Where it has not changed, its own tests prove nothing new."""

    places: tuple[str, ...]
    tests: tuple[str, ...]
    """Files and folders, or the beginning of their names."""
    made_with: tuple[Tool, ...] = ()

    @property
    def made_of(self) -> tuple[str, ...]:
        """Its places, and those of all that it is made with."""
        return (*self.places, *(place for tool in self.made_with for place in tool.made_of))

    def has_changed(self, files: Iterable[str]) -> bool:
        """Whether one of these files is part of it or of what it is made with, or a test of it."""
        return any(file.startswith((*self.made_of, *self.tests)) for file in files)


_KUBE = Tool(
    ("testbed/kube/", "testbed/neighbours/"),
    (
        *("tests/unit/kube/", "tests/unit/e2e/", "tests/e2e/test_baseline.py", "tests/e2e/test_faults.py"),
        *("tests/e2e/test_network.py", "tests/e2e/test_up_and_down.py"),
    ),
)
_RUN = Tool(
    (".ci/", "Makefile", "tests/run/"),
    ("tests/unit/run/", "tests/unit/test_ci.py", "tests/unit/test_makefile.py"),
    made_with=(_KUBE,),
)
_PLANE = Tool(
    ("testbed/plane/",),
    ("tests/unit/api/", "tests/api/test_plane.py"),
    made_with=(_KUBE,),
)
_APISERVER = Tool(
    ("tests/apiserver/",), ("tests/protocol/test_apiserver.py", "tests/protocol/test_fleet.py"), made_with=(_KUBE,)
)
_BENCHMARKS = Tool(
    ("benchmarks/",),
    ("tests/e2e/rsh/test_benchmark.py", "tests/protocol/test_fleet_benchmark.py"),
    made_with=(_KUBE, _PLANE, _APISERVER),
)

TOOLS: Mapping[str, Tool] = {
    "run": _RUN, "kube": _KUBE, "plane": _PLANE, "apiserver": _APISERVER, "benchmarks": _BENCHMARKS,
}  # fmt: skip

SLICES = 4
"""Of what the merge tier leaves out. The fifth slice is the oldest Kubernetes."""

SLICE_BEGINS_WITHIN = 3600
"""Seconds of a run. Where everything was built anew, there may be no time left."""

TESTS_OF_TOOLS = tuple(start for tool in TOOLS.values() for start in tool.tests)

# What a file is taken to last of which nothing is known.
_UNKNOWN = 5.0


class Tier(Enum):
    """Which tests of a folder are run."""

    MERGE = "merge"
    """What every change must pass: each promise once, and a sample of what repeats it."""
    REST = "rest"
    """A share of what the merge tier leaves out."""


@dataclass(frozen=True)
class Choice:
    """A tier, and what decides which tests it has."""

    tier: Tier
    seed: str
    tools: frozenset[str] = frozenset(TOOLS)
    """Which of our tools have their tests in the merge tier."""
    share: int = 1
    shares: int = 1
    """The share of the rest, counted from 1."""

    def __post_init__(self) -> None:
        if not 1 <= self.share <= self.shares:
            raise ValueError(f"there is no share {self.share} of {self.shares}")

    def __str__(self) -> str:
        return f"rest {self.share}/{self.shares}" if self.tier is Tier.REST else self.tier.value


@dataclass(frozen=True)
class Case:
    """A test as it was collected."""

    name: str
    """What pytest calls it."""
    only_full: bool = False
    """Another test, of the merge tier, proves the same."""
    sample: int | None = None
    """How many of its function's cases are in the merge tier; None for all."""
    kind: str = ""
    """So many of each kind, then, and the same cases of every function that has them."""
    one_in: int = 1
    """Of all tests that say the same number, about one in so many is."""

    @property
    def file(self) -> str:
        return file_of(self.name)

    @property
    def function(self) -> str:
        return self.name.partition("[")[0]

    @property
    def group(self) -> tuple[str, str]:
        """Those among which a sample is drawn."""
        return self.function, self.kind

    @property
    def drawn_by(self) -> str:
        """What its lot is drawn by."""
        return self.name.partition("[")[2] if self.kind else self.name

    def is_of_another_tool(self, tools: Container[str]) -> bool:
        """Whether it tests a tool that is not among these."""
        return any(name not in tools and self.name.startswith(tool.tests) for name, tool in TOOLS.items())


def file_of(test: str) -> str:
    return test.partition("::")[0]


def changed_tools(files: Iterable[str]) -> frozenset[str]:
    """The tools that have changed with these files."""
    files = tuple(files)
    return frozenset(name for name, tool in TOOLS.items() if tool.has_changed(files))


def chosen(cases: Sequence[Case], choice: Choice, seconds: Mapping[str, float]) -> set[str]:
    """The names of the tests that are run. `seconds` says what each of them took the last time."""
    merged = _merged(cases, choice)
    if choice.tier is Tier.MERGE:
        return merged
    left = [case for case in cases if case.name not in merged]
    files = _shared_out(left, choice.shares, seconds)[choice.share - 1]
    return {case.name for case in left if case.file in files}


def next_slice(number: int, merge: Choice) -> tuple[str, Choice | None]:
    """The target of the Makefile, and the tier to make it in, that a number of commits comes to."""
    share = number % (SLICES + 1)
    if share == SLICES:
        return "oldest", None
    return "rest", Choice(Tier.REST, merge.seed, merge.tools, share + 1, SLICES)


def longest_first(names: Iterable[str], seconds: Mapping[str, float]) -> list[str]:
    """
    The files of these tests, those that last longest at the beginning.

    Folders stay together, for their files may share a fixture.
    """
    total = _by_file(names, seconds)
    folders: dict[str, float] = {}
    for file, took in total.items():
        folders[_folder_of(file)] = folders.get(_folder_of(file), 0.0) + took
    return sorted(total, key=lambda file: (-folders[_folder_of(file)], _folder_of(file), -total[file], file))


def _merged(cases: Iterable[Case], choice: Choice) -> set[str]:
    wanted = [
        case
        for case in cases
        if not case.only_full
        and not case.is_of_another_tool(choice.tools)
        and _lot(choice.seed, case.name) % case.one_in == 0
    ]
    found = {case.name for case in wanted if case.sample is None}
    drawn = sorted((case for case in wanted if case.sample is not None), key=lambda case: case.group)
    for _, group in groupby(drawn, key=lambda case: case.group):
        by_lot = sorted(group, key=lambda case: _lot(choice.seed, case.drawn_by))
        found.update(case.name for case in by_lot[: by_lot[0].sample])
    return found


def _shared_out(cases: Iterable[Case], shares: int, seconds: Mapping[str, float]) -> list[set[str]]:
    """Files for each share, so that all of them last about as long: each is put where there is least so far."""
    names = [case.name for case in cases]
    total = _by_file(names, seconds)
    found: list[set[str]] = [set() for _ in range(shares)]
    for file in sorted(total, key=lambda file: (-total[file], file)):
        min(found, key=lambda share: sum(total[each] for each in share)).add(file)
    return found


def _by_file(names: Iterable[str], seconds: Mapping[str, float]) -> dict[str, float]:
    total: dict[str, float] = {}
    for name in names:
        total[file_of(name)] = total.get(file_of(name), 0.0) + seconds.get(name, 0.0)
    return {file: known or _UNKNOWN for file, known in total.items()}


def _folder_of(file: str) -> str:
    return file.rpartition("/")[0]


def _lot(seed: str, name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest())
