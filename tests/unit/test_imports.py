"""
Importing a module does nothing and costs little, watched in a fresh interpreter.

test_layers.py reads the source; here the interpreter itself reports what happens.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.layers import sources

MODULES = [
    ".".join(source.parts).removesuffix(".__init__")
    for source in sources("mpirt")
    if source.parts[-1] != "__main__"
]

# What these packages do when they are imported is theirs. Only the controller's own process imports them.
FOREIGN = "kubernetes prometheus_client"
STANDS_ON_THEM = (
    "mpirt.controller.cluster.",
    "mpirt.controller.daemon",
    "mpirt.controller.main",
    "mpirt.controller.metrics",
)

# Runs in the fresh interpreter: what importing a module loads, and what else it does on the way.
WATCH = """
import importlib, json, logging, os, sys, threading
acts = []
EFFECTS = ("os.", "shutil.", "socket.", "subprocess.", "tempfile.", "urllib.", "ctypes.")
QUIET = {"os.listdir", "os.scandir", "os.putenv", "socket.gethostname", "socket.__new__"}
LIBRARIES = tuple(os.path.realpath(path) for path in sys.path if path)
def watch(event, args):
    if event == "open" and isinstance(args[0], str):
        # The import system itself reads source and bytecode.
        if not os.path.realpath(args[0]).startswith(LIBRARIES) and not args[0].endswith((".py", ".pyc")):
            acts.append(f"open {args[0]}")
    elif event.startswith(EFFECTS) and event not in QUIET:
        acts.append(event)
for name in sys.argv[2:]:
    importlib.import_module(name)
before = set(sys.modules)
sys.addaudithook(watch)
importlib.import_module(sys.argv[1])
acts += [f"thread {thread.name}" for thread in threading.enumerate()[1:]]
acts += [f"log handler {handler}" for handler in logging.getLogger().handlers]
print(json.dumps({"acts": acts, "loaded": sorted(set(sys.modules) - before)}), flush=True)
os._exit(0)  # without waiting for a thread that the module may have left
"""


def watch_import(module: str) -> dict[str, list[str]]:
    foreign = FOREIGN.split() if module.startswith(STANDS_ON_THEM) else []
    # -B: writing bytecode is the interpreter's doing and not the module's.
    done = subprocess.run(
        [sys.executable, "-B", "-c", WATCH, module, *foreign],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, list[str]] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize("module", MODULES)
def test_importing_a_module_does_nothing(module: str) -> None:
    assert watch_import(module)["acts"] == []


@pytest.mark.parametrize("module", ["mpirt.errors", "mpirt.names", "mpirt.hosts"])
def test_the_ground_floor_stands_on_the_standard_library_alone(module: str) -> None:
    loaded = {name.partition(".")[0] for name in watch_import(module)["loaded"]}

    assert loaded - sys.stdlib_module_names == {"mpirt"}


def test_the_list_of_names_loads_nothing_at_all() -> None:
    loaded = [name for name in watch_import("mpirt.names")["loaded"] if name.startswith("mpirt")]

    assert loaded == ["mpirt", "mpirt.names"]


@pytest.mark.parametrize(
    ("statement", "act"),
    [
        pytest.param("open('/etc/passwd')", "open /etc/passwd", id="reads a file"),
        pytest.param("import subprocess; subprocess.run(['true'])", "subprocess.Popen", id="starts a program"),
        pytest.param(
            "import socket; socket.socket().connect_ex(('127.0.0.1', 1))", "socket.connect", id="connects"
        ),
        pytest.param(
            "import threading; threading.Timer(60, print).start()", "thread Thread-1", id="starts a thread"
        ),
        pytest.param("import logging; logging.basicConfig()", "log handler", id="sets up logging"),
    ],
)
def test_a_module_that_acts_is_seen(
    statement: str, act: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loud.py").write_text(f"{statement}\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    assert act in "\n".join(watch_import("loud")["acts"])
