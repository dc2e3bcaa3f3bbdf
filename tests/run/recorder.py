"""
A pytest plugin that writes down what happens, for a run that judges all of its pytest processes together.

It works where TEST_RUN_RECORDS names a folder. A pytest process in which tests failed, and nothing else, then
ends with 0: whether the run is red is decided by the run, which reads the records.
"""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

from tests.run import records
from tests.run.records import OK, TESTS_FAILED, Phase
from tests.run.selection import part_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MODULE = __name__
# Not one of mpirt's variables: programs under test see it.
FOLDER = "TEST_RUN_RECORDS"

_PHASES = ("setup", "call", "teardown")


def variables(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """What makes every pytest below this process write its record into that folder."""
    plugins = [name for name in environ.get("PYTEST_PLUGINS", "").split(",") if name and name != MODULE]
    return {FOLDER: str(folder.absolute()), "PYTEST_PLUGINS": ",".join([*plugins, MODULE])}


def read_all(folder: Path) -> tuple[records.Record, ...]:
    """The records in a folder, in the order in which their processes began."""
    files = sorted(folder.glob("*.jsonl"), key=lambda file: file.name)
    return tuple(records.read(file.read_text(encoding="utf-8").splitlines()) for file in files)


def pytest_configure(config: pytest.Config) -> None:
    # Workers of pytest-xdist send their reports to the process that has started them.
    if FOLDER in os.environ and not hasattr(config, "workerinput"):
        folder = Path(os.environ[FOLDER])
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{time.time_ns():020}-{os.getpid()}.jsonl"
        config.pluginmanager.register(Recorder(config, file.open("x", encoding="utf-8")))


class Recorder:
    """Writes the record of this process."""

    def __init__(self, config: pytest.Config, file: IO[str]) -> None:
        self._file = file
        self._lines: list[str] = []
        self._began = time.monotonic()
        asked: Sequence[str] = config.option.file_or_dir
        part = part_of(os.environ)
        options = [str(word) for word in config.invocation_params.args if word not in asked]
        self._write("begun", name=" ".join(asked) + (f", {part.value}" if part else ""), options=options)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._write("selected", tests=[item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self._write("selected", tests=list(ids))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write("error", text=f"can't collect {report.nodeid}\n{report.longreprtext}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when not in _PHASES:
            self._write("error", text=f"a worker crashed in {report.nodeid}\n{report.longreprtext}")
            return
        text = _text(report) if report.failed else ""
        cause = str(getattr(report.longrepr, "reprcrash", "")) if report.failed and report.when == "setup" else ""
        phase = Phase(report.nodeid, report.when, report.outcome, report.duration, text, cause)
        self._write("phase", **asdict(phase))

    def pytest_internalerror(self, excrepr: object) -> None:
        self._write("error", text=f"internal error\n{excrepr}")

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        self._write("ended", code=int(exitstatus), seconds=time.monotonic() - self._began)
        if exitstatus == TESTS_FAILED and not records.read(self._lines).problem():
            session.exitstatus = OK

    def pytest_unconfigure(self) -> None:
        self._file.close()

    def _write(self, kind: str, **fields: object) -> None:
        line = records.line(kind, **fields)
        self._lines.append(line)
        self._file.write(line)
        self._file.flush()


def _text(report: pytest.TestReport) -> str:
    """Why a test failed, and what was captured."""
    captured = [f"---- {title} ----\n{content}" for title, content in report.sections]
    return "\n".join([report.longreprtext, *captured])
