"""
Importing a module does nothing and costs little, watched in a fresh interpreter.

test_layers.py reads the source; here the interpreter itself reports what happens.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.unit.layers import sources

MODULES = [
    ".".join(source.parts).removesuffix(".__init__")
    for source in sources("mpirt")
    if source.parts[-1] != "__main__"
]

# What these packages do when they are imported is theirs. Only the controller's own process imports them.
FOREIGN = ["prometheus_client", "urllib3"]
STANDS_ON_THEM = (
    "mpirt.controller.cluster.",
    "mpirt.controller.daemon",
    "mpirt.controller.main",
    "mpirt.controller.monitoring.metrics",
)

# What this one does when it is imported is its own, too; it is small enough for the switchboard.
SMALL = ["psutil"]

# Runs in a fresh interpreter that has imported what is foreign, and imports one module after the other.
# Prints what importing a module loads, and what else it does on the way; that happens the first time only.
WATCH = """
import importlib, json, logging, os, sys, threading
EFFECTS = ("os.", "shutil.", "socket.", "subprocess.", "tempfile.", "urllib.", "ctypes.")
QUIET = {"os.listdir", "os.scandir", "os.putenv", "socket.gethostname", "socket.__new__"}
LIBRARIES = tuple(os.path.realpath(path) for path in sys.path if path)
acts = []
def watch(event, args):
    if event == "open" and isinstance(args[0], str):
        # The import system itself reads source and bytecode.
        if not os.path.realpath(args[0]).startswith(LIBRARIES) and not args[0].endswith((".py", ".pyc")):
            acts.append(f"open {args[0]}")
    elif event.startswith(EFFECTS) and event not in QUIET:
        acts.append(event)
def look(name):
    before = set(sys.modules)
    acts.clear()
    importlib.import_module(name)
    found = [*acts, *(f"thread {thread.name}" for thread in threading.enumerate()[1:])]
    found += [f"log handler {handler}" for handler in logging.getLogger().handlers]
    print(json.dumps({"module": name, "acts": found, "loaded": sorted(set(sys.modules) - before)}), flush=True)
modules, foreign = json.loads(sys.argv[1])
for name in foreign:
    importlib.import_module(name)
sys.addaudithook(watch)
for name in modules:
    look(name)
os._exit(0)  # without waiting for a thread that a module may have left
"""


@dataclass(frozen=True)
class Imported:
    """What came of importing one module."""

    module: str
    acts: list[str]
    loaded: list[str]


def watch_imports(modules: list[str], foreign: list[str]) -> list[Imported]:
    # -B: writing bytecode is the interpreter's doing and not the module's.
    done = subprocess.run(
        [sys.executable, "-B", "-c", WATCH, json.dumps([modules, foreign])],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [Imported(**json.loads(line)) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("on_foreign", [False, True], ids=["own", "on foreign packages"])
def test_importing_a_module_does_nothing(*, on_foreign: bool) -> None:
    modules = [module for module in MODULES if module.startswith(STANDS_ON_THEM) is on_foreign]

    found = watch_imports(modules, [*SMALL, *(FOREIGN if on_foreign else [])])

    assert [each.module for each in found] == modules
    assert {each.module: each.acts for each in found if each.acts} == {}


def test_the_ground_floor_stands_on_the_standard_library_alone() -> None:
    for each in watch_imports(["mpirt.errors", "mpirt.names", "mpirt.hosts"], []):
        assert {name.partition(".")[0] for name in each.loaded} - sys.stdlib_module_names == {"mpirt"}


def test_the_list_of_names_loads_nothing_at_all() -> None:
    [found] = watch_imports(["mpirt.names"], [])

    assert [name for name in found.loaded if name.startswith("mpirt")] == ["mpirt", "mpirt.names"]


@pytest.mark.parametrize(
    ("statement", "act"),
    [
        pytest.param("open('/etc/passwd')", "open /etc/passwd", id="reads a file"),
        pytest.param("import subprocess; subprocess.run(['true'])", "subprocess.Popen", id="starts a program"),
        ("import socket; socket.socket().connect_ex(('127.0.0.1', 1))", "socket.connect"),
        ("import threading; threading.Timer(60, print).start()", "thread Thread-1"),
        pytest.param("import logging; logging.basicConfig()", "log handler", id="sets up logging"),
    ],
)
def test_a_module_that_acts_is_seen(
    statement: str, act: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loud.py").write_text(f"{statement}\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    [found] = watch_imports(["loud"], [])

    assert act in "\n".join(found.acts)
