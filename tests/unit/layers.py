"""
The rules of the house as tables, and the readers of source code that check them.

Owns: who may import whom, what a module may do when it is imported, how long files and functions get. Reads
source and never runs it, so that a rule holds for imports inside functions and under TYPE_CHECKING too.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

PROJECT = Path(__file__).resolve().parents[2]

_BASE = frozenset({"backoff", "errors", "fields", "hosts", "names", "objects", "podobjects", "values"})

# A part is a module or a package directly under mpirt/. Its own files may always import each other.
MAY_IMPORT: Mapping[str, frozenset[str]] = {
    "backoff": frozenset(),
    "errors": frozenset(),
    "names": frozenset(),
    "values": frozenset(),
    "processes": frozenset({"values"}),
    "hosts": frozenset({"errors", "values"}),
    "launchenv": frozenset(),
    "agent": frozenset(),
    "keeper": frozenset(),
    "fields": frozenset({"errors"}),
    "objects": frozenset(),
    "podobjects": frozenset({"objects"}),
    "account": frozenset({"names", "objects"}),
    "kubeapi": _BASE,
    "rsh": _BASE | {"account", "agent", "keeper", "kubeapi", "launchenv", "processes"},
    "discover": _BASE | {"agent", "kubeapi", "processes"},
    "controller": _BASE | {"account", "keeper", "kubeapi", "launchenv"},
    "cli": _BASE | {"kubeapi", "launchenv", "processes", "rsh", "discover"},
}

# The packages of a part, and those that each of them may import. The modules beside them may import all, and are
# imported by none.
INSIDE: Mapping[str, Mapping[str, frozenset[str]]] = {
    "kubeapi": {
        "access": frozenset(),
        "request": frozenset({"access"}),
        "watch": frozenset({"access", "request"}),
    },
    "rsh": {
        "invocation": frozenset(),
        "protocol": frozenset({"invocation"}),
        "pod": frozenset({"protocol"}),
        "session": frozenset({"invocation", "protocol", "pod"}),
        "watches": frozenset({"pod", "session"}),
        "switchboard": frozenset({"invocation", "protocol", "pod", "session", "watches"}),
    },
    "controller": {
        "model": frozenset(),
        "observed": frozenset({"model"}),
        "manifests": frozenset({"model"}),
        "dialects": frozenset({"model", "manifests"}),
        "messages": frozenset({"model", "observed", "manifests"}),
        "scaling": frozenset({"model", "observed", "manifests", "dialects", "messages"}),
        "decisions": frozenset({"model", "observed", "manifests", "dialects", "messages", "scaling"}),
        "gputasks": frozenset({"model", "observed", "manifests", "dialects", "messages", "decisions"}),
        "monitoring": frozenset({"model"}),
        "cluster": frozenset({"model", "observed", "monitoring"}),
        "loop": frozenset({"model", "observed", "dialects", "messages", "decisions", "monitoring"}),
    },
}

# What is not in the standard library, and the one file or folder that may know it.
USERS: Mapping[str, str] = {
    "click": "mpirt/cli/",
    "psutil": "mpirt/cli/ps/sources.py",
    "prometheus_client": "mpirt/controller/monitoring/metrics.py",
    "rich": "mpirt/cli/ps/live.py",
    "urllib3": "mpirt/controller/cluster/link.py",
    "yaml": "mpirt/kubeapi/",
}

_PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))

# Modules that only compute: a test hands them values and needs nothing else. Every branch of them must be taken.
PURE = frozenset(_PYPROJECT["tool"]["coverage"]["report"]["include"])

_TOOLS: Mapping[tuple[str, ...], str] = {
    **{("testbed", part): "the testbed serves any project" for part in ("kube", "plane", "neighbours")},
    ("tests", "run"): "the run of the tests serves any project",
}

_LAYERS = frozenset({"tests.api", "tests.e2e", "tests.protocol"})

# A folder of tests/, and what it does not import. What two layers of tests need stands in tests/support.
APART: Mapping[str, frozenset[str]] = {
    "api": _LAYERS - {"tests.api"},
    "e2e": _LAYERS - {"tests.e2e"},
    "protocol": _LAYERS - {"tests.protocol"},
    "support": _LAYERS | {"tests.unit", "benchmarks", "demo"},
    "run": _LAYERS | {"tests.unit", "tests.support"},
}

# fmt: off
_EFFECTS = frozenset({
    "asyncio", "http", "io", "logging", "multiprocessing", "os", "random", "secrets", "select", "selectors",
    "shutil", "signal", "socket", "ssl", "subprocess", "sys", "tempfile", "threading", "time", "urllib",
})

# Names that read the world or set something up, when they stand in a line that runs on import.
_READS = frozenset({
    "argv", "basicConfig", "cwd", "environ", "getenv", "open", "Popen", "read_bytes", "read_text", "run", "stdin",
    "Thread",
})
# fmt: on

FILE_LINES = 400
FUNCTION_LINES = 40

# "file" or "file:function" that may be longer, and why. Keep it empty.
LONGER: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file: its path from the project's root, with slashes, and its text."""

    path: str
    text: str

    @property
    def parts(self) -> tuple[str, ...]:
        return PurePosixPath(self.path).with_suffix("").parts

    @property
    def part(self) -> str:
        """Where in mpirt/ it stands: "rsh" for mpirt/rsh/main.py, "" for mpirt/__init__.py."""
        return "" if self.parts[1] == "__init__" else self.parts[1]

    def tree(self) -> ast.Module:
        return _parsed(self)


# For several rules about one file. The garbage collector takes longer over all trees than the parser.
@lru_cache(maxsize=1)
def _parsed(source: Source) -> ast.Module:
    return ast.parse(source.text, source.path)


def sources(*folders: str) -> list[Source]:
    """Every Python file under these folders of the project."""
    return [
        Source(path.relative_to(PROJECT).as_posix(), path.read_text(encoding="utf-8"))
        for folder in folders
        for path in sorted((PROJECT / folder).rglob("*.py"))
    ]


def imports(source: Source) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything a file imports, wherever in it and however it is written."""
    may_call = "__import__" in source.text or "import_module" in source.text
    for node in ast.walk(source.tree()) if may_call else _statements(source.tree()):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, name.name) for name in names)
            case ast.ImportFrom(names=names):
                yield from ((node.lineno, f"{_origin(source, node)}.{name.name}") for name in names)
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Without the expressions, of which there are many more."""
    todo = [tree]
    for node in todo:
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            below = getattr(node, field, None)
            if isinstance(below, list):
                todo += below


def _origin(source: Source, node: ast.ImportFrom) -> str:
    above = source.parts[: -node.level] if node.level else ()
    return ".".join([*above, *([node.module] if node.module else [])])


def forbidden_imports(source: Source) -> list[str]:
    """One line for each import that breaks a rule: file, line, rule."""
    found = ((line, _broken_rule(source, name)) for line, name in imports(source))
    return [f"{source.path}:{line}: {rule}" for line, rule in found if rule]


def _broken_rule(source: Source, name: str) -> str:
    top, _, below = name.partition(".")
    if source.parts[:2] in _TOOLS:
        return f"{_TOOLS[source.parts[:2]]} and imports nothing of mpirt" if top == "mpirt" else ""
    if source.parts[0] in {"benchmarks", "demo"}:
        return f"{source.parts[0]} does as users do and imports nothing of mpirt" if top == "mpirt" else ""
    if top == "mpirt":
        return _broken_rule_of_house(source, below)
    if top in sys.stdlib_module_names:
        pure = source.path in PURE and top in _EFFECTS
        return f"a module that only computes does not import {top}" if pure else ""
    if top not in USERS:
        return f"{top} belongs to nobody: give it a user in USERS, or do without it"
    return "" if source.path.startswith(USERS[top]) else f"only {USERS[top]} imports {top}"


def _broken_rule_of_house(source: Source, below: str) -> str:
    part, _, inside = below.partition(".")
    if source.parts[0] == "images":
        return "" if part == "errors" else "images take only mpirt.errors of mpirt"
    if part == source.part and part in INSIDE and inside:
        return _broken_inside(source, INSIDE[part], inside.partition(".")[0])
    return _broken_between_parts(source.part, part)


def _broken_inside(source: Source, parts: Mapping[str, frozenset[str]], other: str) -> str:
    here = source.parts[2]
    if here not in parts or other in parts[here] | {here}:
        return ""
    allowed = ", ".join(sorted(parts[here])) or "nothing"
    return f"{source.part}/{here} may import {allowed} of {source.part}, but not {other}"


def _broken_between_parts(part: str, other: str) -> str:
    if part == other or (part and other in {"", "__version__"}):
        return ""
    if part not in MAY_IMPORT:
        return f"{part or 'mpirt itself'} has no rule in MAY_IMPORT, so it may import nothing of mpirt"
    allowed = ", ".join(sorted(MAY_IMPORT[part])) or "nothing"
    return "" if other in MAY_IMPORT[part] else f"{part} may import {allowed} of mpirt, but not {other}"


def forbidden_imports_of_tests(source: Source) -> list[str]:
    """One line for each import of a test file, or of a layer of tests that is none of its business."""
    found = ((line, _broken_rule_of_tests(source, name)) for line, name in imports(source))
    return [f"{source.path}:{line}: {rule}" for line, rule in found if rule]


def _broken_rule_of_tests(source: Source, name: str) -> str:
    top, *below = name.split(".")
    if top == "tests" and any(word.startswith("test_") for word in below):
        return f"{name} is of a test file: what others need has a module of its own"
    if source.parts[0] == "testbed":
        return f"testbed does not import {name}" if top in {"mpirt", "tests"} else ""
    folder = source.parts[1]
    for other in APART.get(folder, ()) if source.parts[0] == "tests" else ():
        if f"{name}.".startswith(f"{other}."):
            return f"tests/{folder} does not import {other}"
    return ""


def acts_on_import(source: Source) -> list[str]:
    """Statements that do something, or look at the world, when the module is merely imported."""
    return [
        f"{source.path}:{node.lineno}: importing does nothing: {ast.unparse(node).splitlines()[0]}"
        for node in _run_on_import(source.tree().body)
        if _is_bare_statement(node) or any(_name(part) in _READS for part in _evaluated(node))
    ]


def _run_on_import(body: Sequence[ast.stmt]) -> Iterator[ast.stmt | ast.expr]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
            case ast.ClassDef():
                yield from [*node.decorator_list, *node.bases]
                yield from _run_on_import(node.body)
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Compare(left=ast.Name(id="__name__"))):
                yield from _run_on_import(node.orelse)
            case _:
                yield node


def _is_bare_statement(node: ast.stmt | ast.expr) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Assign() | ast.AnnAssign() | ast.Pass():
            return False
        case ast.Expr(value=ast.Constant()):
            return False
        case _:
            return isinstance(node, ast.stmt)


def _evaluated(node: ast.stmt | ast.expr) -> Iterator[ast.AST]:
    """What is looked up when the line runs: of an assignment its value, not the name it is given."""
    return ast.walk(node.value or ast.Pass()) if isinstance(node, ast.Assign | ast.AnnAssign) else ast.walk(node)


def _name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def placeholders(files: Sequence[Source]) -> list[str]:
    """Modules in which nothing lives. A package's own file may be empty if something lives beside it."""
    inhabited = [file.path for file in files if _is_inhabited(file)]
    return [
        f"{file.path}: an empty module or package; create it together with its content"
        for file in files
        if file.path not in inhabited and not _has_neighbour(file.path, inhabited)
    ]


def _is_inhabited(file: Source) -> bool:
    values = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
    return any(isinstance(node, values) for node in file.tree().body)


def _has_neighbour(path: str, inhabited: Sequence[str]) -> bool:
    folder = path.removesuffix("__init__.py")
    return folder != path and any(other.startswith(folder) for other in inhabited)


def silent(source: Source) -> list[str]:
    """A module whose first lines don't say what it owns."""
    return [] if ast.get_docstring(source.tree()) else [f"{source.path}:1: no docstring says what it owns"]


def too_long(source: Source) -> list[str]:
    """Files and functions that have grown beyond what a reader holds in mind at once."""
    lines = len(source.text.splitlines())
    found = [(source.path, lines, FILE_LINES)] + [
        (f"{source.path}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1, FUNCTION_LINES)
        for node in _statements(source.tree())
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return [
        f"{what}: {length} lines, at most {limit}; is there a seam?"
        for what, length, limit in found
        if length > limit and what not in LONGER
    ]
