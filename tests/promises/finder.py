"""
The marks in the sources of test files. Imports and collects no tests.

Marks are found where pytest finds them: on functions, classes and cases, and in `pytestmark`. A mark anywhere else
would prove nothing, so it is an error.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tests.run.tiers import TESTS_OF_TOOLS

PROJECT = Path(__file__).resolve().parents[2]

_MARK, _MODULE_MARKS = "promise", "pytestmark"
# The merge tier may be without them.
_FULL = {"pytest.mark.full", "pytest.mark.one_in"}


class Tier(Enum):
    """Where a test runs."""

    MERGE = "merge"
    FULL = "full"
    TOOLS = "tools"
    """In the merge tier, but only when the tools of the tests have changed."""


class MisplacedMark(Exception):
    """A mark that no test has, or one whose words can't be read."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}:{line}: {problem}")


@dataclass(frozen=True, slots=True)
class Proof:
    """A test, and a promise that it proves."""

    words: str
    subject: str
    file: str
    """From the project's root."""
    line: int
    test: str
    """As pytest calls it in its file; empty for all of the file."""
    is_full: bool = False
    no_cluster: str | None = None

    @property
    def layer(self) -> str:
        """The folder under tests/."""
        return self.file.split("/")[1]

    @property
    def tier(self) -> Tier:
        if self.is_full:
            return Tier.FULL
        return Tier.TOOLS if self.file.startswith(TESTS_OF_TOOLS) else Tier.MERGE


@dataclass(frozen=True, slots=True)
class _Place:
    """Where marks stand."""

    file: str
    test: str
    is_full: bool

    def inside(self, name: str, marks: Sequence[ast.expr]) -> _Place:
        test = f"{self.test}::{name}" if self.test else name
        return _Place(self.file, test, self.is_full or _is_full(marks))

    def case(self, name: str, marks: Sequence[ast.expr]) -> _Place:
        return _Place(self.file, f"{self.test}[{name}]", self.is_full or _is_full(marks))

    def proofs(self, marks: Sequence[ast.expr]) -> Iterator[tuple[ast.Call, Proof]]:
        for call in filter(_is_promise, marks):
            assert isinstance(call, ast.Call)
            yield call, self._proof(call)

    def _proof(self, call: ast.Call) -> Proof:
        try:
            words = [ast.literal_eval(word) for word in call.args]
            options = {str(option.arg): ast.literal_eval(option.value) for option in call.keywords}
        except ValueError:
            raise MisplacedMark(self.file, call.lineno, "the words of a promise are literals") from None
        match words, options:
            case [[str(said)], {"of": str(subject), **others}] if others.keys() <= {"no_cluster"}:
                return Proof(
                    said, subject, self.file, call.lineno, self.test, self.is_full, others.get("no_cluster")
                )
        raise MisplacedMark(self.file, call.lineno, 'a promise is promise("words", of="subject")')


def all_proofs() -> list[Proof]:
    """What all tests prove, read from their sources."""
    return [
        proof
        for path in sorted((PROJECT / "tests").rglob("test_*.py"))
        for proof in proofs(path.relative_to(PROJECT).as_posix(), path.read_text(encoding="utf-8"))
    ]


def proofs(file: str, text: str) -> list[Proof]:
    """What the tests of this file prove."""
    if _MARK not in text:
        return []
    tree = ast.parse(text, file)
    found = list(_in_body(_Place(file, "", is_full=False), tree.body))
    known = {id(call) for call, _ in found}
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and _is_promise(node) and id(node) not in known:
            raise MisplacedMark(file, node.lineno, "no test has this mark")
    return [proof for _, proof in found]


def _in_body(place: _Place, body: Sequence[ast.stmt]) -> Iterator[tuple[ast.Call, Proof]]:
    marks = list(_module_marks(body))
    here = _Place(place.file, place.test, place.is_full or _is_full(marks))
    yield from here.proofs(marks)
    for node in body:
        match node:
            case ast.ClassDef(name=name) if name.startswith("Test"):
                inner = here.inside(name, node.decorator_list)
                yield from inner.proofs(node.decorator_list)
                yield from _in_body(inner, node.body)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("test_"):
                test = here.inside(name, node.decorator_list)
                yield from test.proofs(node.decorator_list)
                yield from _in_cases(test, node.decorator_list)


def _in_cases(test: _Place, decorators: Iterable[ast.expr]) -> Iterator[tuple[ast.Call, Proof]]:
    """Of the cases that are written out in the decorator."""
    for node in (node for decorator in decorators for node in ast.walk(decorator)):
        match node:
            case ast.Call(func=ast.Attribute(attr="param"), keywords=[*options]):
                values = {option.arg: option.value for option in options}
                name = values.get("id")
                marks = _listed(values["marks"]) if "marks" in values else []
                case = test.case(str(name.value) if isinstance(name, ast.Constant) else "", marks)
                yield from case.proofs(marks)


def _module_marks(body: Iterable[ast.stmt]) -> Iterator[ast.expr]:
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == _MODULE_MARKS:
                yield from _listed(value)


def _listed(value: ast.expr) -> list[ast.expr]:
    return value.elts if isinstance(value, ast.List | ast.Tuple) else [value]


def _is_full(marks: Iterable[ast.expr]) -> bool:
    return any(_name(mark) in _FULL for mark in marks)


def _is_promise(node: ast.expr) -> bool:
    return _name(node) in {_MARK, f"promises.{_MARK}", f"pytest.mark.{_MARK}"}


def _name(node: ast.expr) -> str:
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""
