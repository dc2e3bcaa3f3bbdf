"""The rules of the house hold for every file, and the readers that check them can tell a broken rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from tests.unit import layers
from tests.unit.layers import Source, sources

Rule: TypeAlias = "Callable[[Source], list[str]]"

MPIRT = sources("mpirt")
TESTS = sources("tests", "testbed", "benchmarks", "demo")
HOUSE = sources("mpirt", "testbed/kube", "testbed/plane", "tests/run", "benchmarks", "demo", "deploy", "images")


@pytest.fixture(scope="module")
def broken() -> dict[Rule, list[str]]:
    """What is wrong in the house by each of these rules. Each file is parsed once for all of them."""
    found: dict[Rule, list[str]] = {layers.forbidden_imports: [], layers.silent: [], layers.too_long: []}
    for source in HOUSE:
        for rule in found:
            found[rule] += rule(source)
    return found


class TestTheHouse:
    def test_a_file_imports_only_what_its_layer_may(self, broken: dict[Rule, list[str]]) -> None:
        assert broken[layers.forbidden_imports] == []

    def test_a_test_file_is_imported_by_nothing_and_layers_of_tests_share_only_their_support(self) -> None:
        assert [broken for source in TESTS for broken in layers.forbidden_imports_of_tests(source)] == []

    def test_a_file_does_nothing_when_it_is_imported(self) -> None:
        assert [broken for source in MPIRT for broken in layers.acts_on_import(source)] == []

    def test_a_file_says_what_it_owns(self, broken: dict[Rule, list[str]]) -> None:
        assert broken[layers.silent] == []

    def test_a_file_and_its_functions_fit_into_a_readers_head(self, broken: dict[Rule, list[str]]) -> None:
        assert broken[layers.too_long] == []

    def test_no_part_is_empty(self) -> None:
        assert layers.placeholders(HOUSE) == []

    def test_every_part_has_a_rule(self) -> None:
        assert {source.part for source in MPIRT} - {""} <= layers.MAY_IMPORT.keys()

    def test_the_rules_have_no_way_round_in_a_circle(self) -> None:
        settled: set[str] = set()
        while ready := {
            part for part, below in layers.MAY_IMPORT.items() if part not in settled and below <= settled
        }:
            settled |= ready

        assert settled == layers.MAY_IMPORT.keys()

    @pytest.mark.parametrize("house", layers.INSIDE)
    def test_every_package_of_a_part_has_a_rule(self, house: str) -> None:
        folders = {source.parts[2] for source in MPIRT if source.part == house and source.path.count("/") > 2}

        assert folders == layers.INSIDE[house].keys()

    def test_a_module_of_which_all_branches_must_be_taken_is_there(self) -> None:
        assert {source.path for source in MPIRT} >= layers.PURE


def forbidden(path: str, text: str) -> list[str]:
    return layers.forbidden_imports(Source(path, text))


class TestImportsAreFound:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            pytest.param("import mpirt.rsh.main", (1, "mpirt.rsh.main"), id="import"),
            pytest.param("import os, click", (1, "click"), id="second of two"),
            pytest.param("import click as c", (1, "click"), id="renamed"),
            pytest.param("from mpirt import rsh", (1, "mpirt.rsh"), id="part from the package"),
            pytest.param("from mpirt.rsh import argv", (1, "mpirt.rsh.argv"), id="module from a part"),
            pytest.param("from . import server", (1, "mpirt.rsh.switchboard.server"), id="beside"),
            pytest.param("from .server import Server", (1, "mpirt.rsh.switchboard.server.Server"), id="within"),
            pytest.param("from ...discover import x", (1, "mpirt.discover.x"), id="two floors up"),
            pytest.param("def f():\n    import click", (2, "click"), id="inside a function"),
            pytest.param("if TYPE_CHECKING:\n    import click", (2, "click"), id="for the type checker"),
            pytest.param("import_module('click')", (1, "click"), id="import_module"),
            pytest.param("importlib.import_module('click')", (1, "click"), id="importlib.import_module"),
            pytest.param("__import__('click')", (1, "click"), id="__import__"),
        ],
    )
    def test_however_they_are_written(self, text: str, found: tuple[int, str]) -> None:
        assert found in layers.imports(Source("mpirt/rsh/switchboard/stub.py", text))

    def test_a_packages_own_file_counts_from_its_folder(self) -> None:
        source = Source("mpirt/rsh/__init__.py", "from .argv import parse\nfrom ..hosts import Host\n")

        assert list(layers.imports(source)) == [(1, "mpirt.rsh.argv.parse"), (2, "mpirt.hosts.Host")]


NOBODY = "belongs to nobody: give it a user in USERS, or do without it"
NO_RULE = "has no rule in MAY_IMPORT, so it may import nothing of mpirt"
LINK = "mpirt/controller/cluster/link.py"
CLI = (
    "cli may import backoff, discover, errors, fields, hosts, kubeapi, launchenv, names, "
    "objects, podobjects, processes, rsh, values of mpirt, but not controller"
)


class TestImportRules:
    @pytest.mark.parametrize(
        ("path", "text", "rule"),
        [
            ("mpirt/errors.py", "import mpirt.names", "errors may import nothing of mpirt, but not names"),
            (
                "mpirt/hosts.py",
                "from mpirt.names import X",
                "hosts may import errors, values of mpirt, but not names",
            ),
            ("mpirt/cli/main.py", "from mpirt.controller import main", CLI),
            ("mpirt/__init__.py", "from mpirt.errors import X", f"mpirt itself {NO_RULE}"),
            ("mpirt/utils.py", "from mpirt.errors import MpirtError", f"utils {NO_RULE}"),
            ("mpirt/rsh/main.py", "import click", "only mpirt/cli/ imports click"),
            ("mpirt/discover/main.py", "import click.testing", "only mpirt/cli/ imports click"),
            ("mpirt/rsh/session.py", "import websocket", f"websocket {NOBODY}"),
            ("mpirt/controller/loop/queue.py", "import urllib3", f"only {LINK} imports urllib3"),
            ("mpirt/rsh/main.py", "import requests", f"requests {NOBODY}"),
            ("mpirt/hosts.py", "from tests.unit import layers", f"tests {NOBODY}"),
            ("mpirt/hosts.py", "import os.path", "a module that only computes does not import os"),
            ("testbed/kube/x.py", "import mpirt", "the testbed serves any project and imports nothing of mpirt"),
            ("benchmarks/x.py", "import mpirt.rsh", "benchmarks does as users do and imports nothing of mpirt"),
            ("demo/job.py", "import mpirt", "demo does as users do and imports nothing of mpirt"),
            ("images/runtime/install.py", "import mpirt.rsh", "images take only mpirt.errors of mpirt"),
        ],
    )
    def test_forbidden_imports_are_named(self, path: str, text: str, rule: str) -> None:
        assert forbidden(path, f"'''Docstring.'''\n{text}\n") == [f"{path}:2: {rule}"]

    @pytest.mark.parametrize(
        ("path", "text"),
        [
            pytest.param("mpirt/hosts.py", "from mpirt.errors import SpecError", id="down one floor"),
            pytest.param("mpirt/hosts.py", "import json", id="computing with the standard library"),
            pytest.param("mpirt/kubeapi/request/api.py", "import socket", id="I/O where it belongs"),
            pytest.param("mpirt/rsh/main.py", "from mpirt.kubeapi import http", id="rsh over kubeapi"),
            pytest.param("mpirt/rsh/main.py", "from mpirt.rsh import argv", id="within a part"),
            pytest.param("mpirt/rsh/main.py", "from mpirt import __version__", id="the version"),
            pytest.param("mpirt/controller/cluster/link.py", "import urllib3", id="the one user of urllib3"),
            pytest.param("mpirt/cli/hosts.py", "import click", id="click in the command line"),
            pytest.param("mpirt/cli/env.py", "from mpirt.rsh import argv", id="command line over rsh"),
            pytest.param("testbed/kube/cluster.py", "import psutil, testbed.kube.paths", id="test cluster"),
            pytest.param("images/runtime/install.py", "from mpirt.errors import ExitCode", id="codes in images"),
            pytest.param("benchmarks/place.py", "import psutil, testbed.ground", id="benchmarks"),
        ],
    )
    def test_allowed_imports_pass(self, path: str, text: str) -> None:
        assert forbidden(path, text) == []


OF_A_TEST = "of a test file: what others need has a module of its own"


class TestImportRulesOfTests:
    @pytest.mark.parametrize(
        ("path", "text", "rule"),
        [
            ("tests/api/beds.py", "from tests.e2e.ground import X", "tests/api does not import tests.e2e"),
            ("tests/protocol/conftest.py", "from tests import api", "tests/protocol does not import tests.api"),
            ("tests/support/times.py", "import tests.e2e.agent", "tests/support does not import tests.e2e"),
            ("testbed/x.py", "from tests.support import times", "testbed does not import tests.support.times"),
            ("tests/e2e/test_a.py", "from tests.e2e.test_b import C", f"tests.e2e.test_b.C is {OF_A_TEST}"),
            ("benchmarks/rsh.py", "from tests.e2e import test_b", f"tests.e2e.test_b is {OF_A_TEST}"),
        ],
    )
    def test_forbidden_imports_are_named(self, path: str, text: str, rule: str) -> None:
        assert layers.forbidden_imports_of_tests(Source(path, text)) == [f"{path}:1: {rule}"]

    @pytest.mark.parametrize(
        ("path", "text"),
        [
            pytest.param("tests/api/beds.py", "from testbed.ground import Ground", id="support"),
            pytest.param("tests/e2e/rsh/starts.py", "from tests.e2e.rsh import agent", id="within a layer"),
            pytest.param("tests/unit/e2e/test_page.py", "from tests.e2e.docs import page", id="a tool of tests"),
            pytest.param("benchmarks/rsh.py", "from tests.e2e.rsh import agent", id="benchmarks"),
            pytest.param("tests/conftest.py", "from tests.api import beds", id="what is in no folder"),
        ],
    )
    def test_allowed_imports_pass(self, path: str, text: str) -> None:
        assert layers.forbidden_imports_of_tests(Source(path, text)) == []


class TestImportingDoesNothing:
    @pytest.mark.parametrize(
        "statement",
        [
            pytest.param("logging.basicConfig()", id="logging"),
            pytest.param("config.load_incluster_config()", id="call"),
            pytest.param("for name in names: setattr(a, name, 1)", id="loop"),
            pytest.param("TOKEN = open('/token').read()", id="file"),
            pytest.param("TOKEN = Path('/token').read_text()", id="path"),
            pytest.param("DEBUG = os.environ.get('MPIRT_LOG')", id="environment"),
            pytest.param("DEBUG: str = os.getenv('MPIRT_LOG', '')", id="environment, annotated"),
            pytest.param("def f(home=os.environ['HOME']): pass", id="default argument"),
            pytest.param("def f(*, home=os.environ['HOME']): pass", id="default keyword argument"),
            pytest.param("class C:\n    home = os.environ['HOME']", id="class body"),
            pytest.param("if TYPE_CHECKING:\n    pass\nelse:\n    print()", id="not for the type checker"),
        ],
    )
    def test_a_statement_that_acts_is_found(self, statement: str) -> None:
        assert len(layers.acts_on_import(Source("mpirt/rsh/main.py", statement))) == 1

    @pytest.mark.parametrize(
        "statement",
        [
            pytest.param('"""Docstring."""', id="docstring"),
            pytest.param("NAME = re.compile('[a-z]+')", id="constant that is computed"),
            pytest.param("def main():\n    return os.environ['HOME']", id="inside a function"),
            pytest.param("class C:\n    def home(self): return os.environ['HOME']", id="inside a method"),
            pytest.param("if TYPE_CHECKING:\n    import ssl", id="for the type checker"),
            pytest.param("if __name__ == '__main__':\n    sys.exit(main())", id="when it is the program"),
            pytest.param("class C:\n    environ: dict[str, str]", id="field of such a name"),
            pytest.param("@dataclass(frozen=True)\nclass C:\n    name: str = ''", id="dataclass"),
        ],
    )
    def test_a_statement_that_only_defines_passes(self, statement: str) -> None:
        assert layers.acts_on_import(Source("mpirt/rsh/main.py", statement)) == []

    def test_the_line_and_the_statement_are_named(self) -> None:
        assert layers.acts_on_import(Source("mpirt/a.py", "import os\n\nHOME = os.environ['HOME']\n")) == [
            "mpirt/a.py:3: importing does nothing: HOME = os.environ['HOME']"
        ]


class TestParts:
    def test_a_module_with_words_only_is_empty(self) -> None:
        files = [Source("mpirt/discover.py", '"""Will come."""\nimport os\n')]

        assert layers.placeholders(files) == [
            "mpirt/discover.py: an empty module or package; create it together with its content"
        ]

    def test_a_folder_without_modules_is_empty(self) -> None:
        files = [Source("mpirt/rsh/main.py", "X = 1"), Source("mpirt/discover/__init__.py", '"""Will come."""')]

        assert layers.placeholders(files) == [
            "mpirt/discover/__init__.py: an empty module or package; create it together with its content"
        ]

    def test_a_folder_in_which_something_lives_is_not(self) -> None:
        files = [Source("mpirt/rsh/__init__.py", '"""Words."""'), Source("mpirt/rsh/main.py", "X = 1")]

        assert layers.placeholders(files) == []


class TestLengths:
    def test_a_long_file_is_named(self) -> None:
        assert layers.too_long(Source("mpirt/a.py", "X = 1\n" * 401)) == [
            "mpirt/a.py: 401 lines, at most 400; is there a seam?"
        ]

    def test_a_long_function_is_named(self) -> None:
        text = "class C:\n    def f(self):\n" + "        pass\n" * 40

        assert layers.too_long(Source("mpirt/a.py", text)) == [
            "mpirt/a.py:f: 41 lines, at most 40; is there a seam?"
        ]

    def test_a_file_and_a_function_of_the_limit_pass(self) -> None:
        text = "def f():\n" + "    pass\n" * 39 + "X = 1\n" * 360

        assert layers.too_long(Source("mpirt/a.py", text)) == []


class TestDocstrings:
    def test_a_module_that_says_nothing_is_named(self) -> None:
        assert layers.silent(Source("mpirt/a.py", "X = 1")) == ["mpirt/a.py:1: no docstring says what it owns"]

    def test_a_module_that_speaks_passes(self) -> None:
        assert layers.silent(Source("mpirt/a.py", '"""Owns X."""\nX = 1')) == []
