"""A controller as a process, and what tests do with it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from testbed.kube.wait import until
from tests.apiserver.objects import ObjectServer
from tests.apiserver.storage import Place

WITHIN = 60.0

JOB = Place("mpijobs", "ml", "train")
# The launcher gets its rights when there are workers, which are not created here.
MADE = {
    "configmaps": ["ml/train-config"],
    "serviceaccounts": ["ml/train-launcher"],
    "services": ["ml/train"],
    "statefulsets": ["ml/train-worker"],
}


class Controller:
    """One process."""

    def __init__(self, kubeconfig: Path, log: Path, words: Sequence[str]) -> None:
        self._log = log
        with log.open("w") as out:
            program = Path(sys.executable).with_name("mpirt-controller")
            options = [f"--kubeconfig={kubeconfig}", "--metrics-port=0", "--metrics-address=127.0.0.1", *words]
            self._process = subprocess.Popen([program, *options], stdout=out, stderr=out)

    def said(self) -> str:
        return self._log.read_text()

    def wait_until_it_says(self, words: str) -> None:
        until(lambda: words in self.said(), within=WITHIN, what=f"{words!r} in {self._log}")

    def lines(self, message: str, **fields: str) -> list[dict[str, Any]]:
        """The lines of a log in JSON with this message and these fields."""
        found = [json.loads(line) for line in self.said().splitlines()]
        return [line for line in found if {"message": message, **fields}.items() <= line.items()]

    def page(self, path: str) -> tuple[int, str]:
        """What it answers at its port for machines. Its log is in JSON."""
        [started] = self.lines("started")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{started['port']}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def ask_to_end(self) -> None:
        self._process.terminate()

    def code(self) -> int:
        """Wait for its end."""
        return self._process.wait(WITHIN)


Start = Callable[..., Controller]
"""Runs a controller with more words; it ends with the test."""


def job(**launcher: Any) -> dict[str, Any]:
    """A job of two workers."""
    worker = {"containers": [{"name": "mpi", "image": "mpi:4"}]}
    main = {"containers": [{"name": "mpi", "image": "mpi:4", "command": ["mpirun", "/pi"]}], **launcher}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "train", "namespace": "ml"},
        "spec": {
            "launcherCreationPolicy": "WaitForWorkersReady",
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": {"spec": main}},
                "Worker": {"replicas": 2, "template": {"spec": worker}},
            },
        },
    }


def condition(server: ObjectServer, kind: str) -> dict[str, Any]:
    """The job's condition of that type, empty if it has none."""
    found = server.storage.get(JOB).get("status", {}).get("conditions", [])
    return next((each for each in found if each["type"] == kind), {})


def wait_until_made(server: ObjectServer) -> None:
    """Wait until all there is to do before any worker is Ready was done."""
    until(lambda: made(server) == MADE, within=WITHIN, what="the objects of the job", instead=lambda: made(server))
    until(lambda: condition(server, "Created"), within=WITHIN, what="the condition Created")


def made(server: ObjectServer) -> dict[str, list[str]]:
    """Names of what a job is made of."""
    return {plural: server.storage.names(plural) for plural in MADE}
