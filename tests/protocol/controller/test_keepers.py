"""The keeper's files, from the installation to a job's ConfigMap, by a controller as a process."""

from __future__ import annotations

import shutil
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.kube.wait import until
from tests.apiserver.objects import ObjectServer
from tests.apiserver.storage import Place
from tests.protocol.controller.process import JOB, WITHIN, Controller, job, wait_until_made
from tests.unit.layers import PROJECT

Start = Callable[..., Controller]

CONFIG = Place("configmaps", "ml", "train-config")


def files(server: ObjectServer) -> dict[str, bytes]:
    binary = server.storage.get(CONFIG).get("binaryData", {})
    return {name: b64decode(text, validate=True) for name, text in binary.items()}


def test_workers_get_what_is_installed_and_keep_it(server: ObjectServer, start: Start) -> None:
    server.storage.create(JOB, job())
    controller = start("--no-lease")
    wait_until_made(server)
    installed = {path.name: path.read_bytes() for path in (PROJECT / "mpirt/keeper").glob("keeper-*")}
    assert files(server) == installed

    server.storage.change(CONFIG, lambda body: body["binaryData"].update({"keeper-1-amd64": "AAAA"}))

    until(lambda: files(server) == installed, within=WITHIN, what="the file to be put right")
    assert "keeper not installed" not in controller.said()


def test_jobs_without_a_keeper_run_and_that_is_reported_once(
    server: ObjectServer, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ignored = shutil.ignore_patterns("keeper-*", "__pycache__")
    shutil.copytree(PROJECT / "mpirt", tmp_path / "without/mpirt", ignore=ignored)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "without"))
    server.storage.create(JOB, job())

    controller = start("--no-lease")

    wait_until_made(server)
    assert files(server) == {}
    missing = "keeper-1-amd64,keeper-1-arm64"
    line = f'level=warning message="keeper not installed; workers run without it" missing={missing}'
    assert controller.said().count(line) == 1
