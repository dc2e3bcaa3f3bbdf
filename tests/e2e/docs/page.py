"""
What a page tells its reader to do: files to save and commands to type, in the order of the page.

Owns: the form of such a page, and the comparison of the output that it shows with the real one. No I/O.

A file is a block of YAML that begins with a comment, its name. A command is a line of a `console` block that
begins with `$ `; the lines below it are its output. A line `...` stands for any number of lines, and `...` at the
end of a line for the rest of that line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PROMPT, _LEFT_OUT = "$ ", "..."
# What differs from run to run: how long ago something was, names that Kubernetes chooses, and where pods are.
_VARYING = {
    r"\b(\d+[dhms])+\b": "<age>",
    r"(-launcher)-[a-z0-9]{5}\b": r"\1-<suffix>",
    r"\bnode-\d+\b": "<node>",
    r"\s+": " ",
}


class PageError(Exception):
    """The page does not have the form that is described above."""


@dataclass(frozen=True, slots=True)
class File:
    """A file that the reader saves."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A line that the reader types into a shell, and the output that the page shows."""

    line: str
    shown: tuple[str, ...] = ()


Step = File | Command


def section(page: str, heading: str) -> str:
    """Return the text below a heading of the second level. Raises PageError."""
    found = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    if len(found) != 1:
        raise PageError(f"expected one section {heading!r}, found {len(found)}")
    return str(found[0])


def steps(text: str) -> list[Step]:
    """Return what a reader does, in order. Raises PageError for a block that is neither file nor commands."""
    return [step for language, block in _BLOCK.findall(text) for step in _steps_of(language, block)]


def missing(shown: Sequence[str], output: str) -> list[str]:
    """Return the lines of the page that the output lacks."""
    real = [_constant(line) for line in output.splitlines()]
    return [line for line in shown if line != _LEFT_OUT and not any(_matches(line, each) for each in real)]


def _steps_of(language: str, block: str) -> Iterator[Step]:
    match language:
        case "yaml":
            yield _file(block)
        case "console":
            yield from _commands(block)
        case _:
            raise PageError(f"expected a block of yaml or console, found {language}")


def _file(block: str) -> File:
    first, _, _ = block.partition("\n")
    name = re.fullmatch(r"# ([\w.-]+)", first)
    if name is None:
        raise PageError(f"expected a comment with the file's name, found {first!r}")
    return File(name[1], block)


def _commands(block: str) -> Iterator[Command]:
    if not block.startswith(_PROMPT):
        raise PageError(f"expected a command after {_PROMPT!r}, found {block.partition(chr(10))[0]!r}")
    for one in re.split(rf"^{re.escape(_PROMPT)}", block, flags=re.MULTILINE)[1:]:
        line, *shown = one.splitlines()
        yield Command(line, tuple(shown))


def _matches(shown: str, real: str) -> bool:
    front = shown.removesuffix(_LEFT_OUT)
    return real == _constant(shown) if front == shown else real.startswith(_constant(front))


def _constant(line: str) -> str:
    """Return the line without what differs from run to run."""
    for pattern, word in _VARYING.items():
        line = re.sub(pattern, word, line)
    return line.strip()
