"""
The fleet in the hands of who has started it: a test or a benchmark.

Owns: its process, from its start to its end, and the requests that only its owner makes.
"""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_PATIENCE = 30.0


class FleetProcess:
    """A fleet that serves."""

    def __init__(self, process: subprocess.Popen[bytes], kubeconfig: Path) -> None:
        self.process, self.kubeconfig = process, kubeconfig
        config = json.loads(kubeconfig.read_text())
        self._url = urlsplit(config["clusters"][0]["cluster"]["server"])
        self._headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
        self._context = ssl.create_default_context(cafile=str(kubeconfig.parent / "ca.crt"))

    def stats(self) -> dict[str, Any]:
        """What it has counted by now."""
        found: dict[str, Any] = self._ask("GET", "/fleet/stats")
        return found

    def delete(self, pod: str) -> None:
        """Have a pod deleted, with all that runs in it."""
        self._ask("POST", f"/fleet/delete/{pod}")

    def modify(self, pod: str) -> None:
        """Have a pod modified, which means nothing."""
        self._ask("POST", f"/fleet/modify/{pod}")

    @contextmanager
    def watching(self, query: str) -> Iterator[Iterator[dict[str, Any]]]:
        """What a watch on pods says, line by line."""
        with self._asking("GET", f"/api/v1/namespaces/ml/pods?watch=true&{query}") as answer:
            yield (json.loads(line) for line in answer)

    def _ask(self, method: str, target: str) -> Any:
        with self._asking(method, target) as answer:
            return json.loads(answer.read())

    @contextmanager
    def _asking(self, method: str, target: str) -> Iterator[http.client.HTTPResponse]:
        assert self._url.hostname is not None
        connection = http.client.HTTPSConnection(
            self._url.hostname, self._url.port, timeout=_PATIENCE, context=self._context
        )
        try:
            connection.request(method, target, headers=self._headers)
            answer = connection.getresponse()
            assert answer.status == http.HTTPStatus.OK, answer.read()
            yield answer
        finally:
            connection.close()


@contextmanager
def running(folder: Path, pods: int) -> Iterator[FleetProcess]:
    """A fleet with so many pods, as long as the block lasts."""
    words = [sys.executable, "-m", "tests.apiserver.fleet", "--pods", str(pods), "--folder", str(folder)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            path = process.stdout.readline().decode().strip()
            assert path, "the fleet has ended instead of serving"
            yield FleetProcess(process, Path(path))
        finally:
            process.stdin.close()
            try:
                process.wait(_PATIENCE)
            finally:
                process.kill()
