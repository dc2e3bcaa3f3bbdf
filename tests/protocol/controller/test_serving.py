"""The port for machines."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from mpirt.controller.metrics import CONTENT_TYPE, Metrics
from mpirt.controller.serving import Server, verdict

LOOPBACK = "127.0.0.1"


def started() -> Server:
    """The server of a process that is well but not ready."""
    metrics = Metrics()
    pages = {
        "/metrics": lambda: (200, CONTENT_TYPE, metrics.page()),
        "/healthz": lambda: verdict([]),
        "/readyz": lambda: verdict(["pods are not listed yet", "jobs are not listed yet"]),
    }
    found = Server(LOOPBACK, 0, pages)
    found.start()
    return found


@pytest.fixture
def server() -> Iterator[Server]:
    found = started()
    yield found
    found.stop()


def ask(server: Server, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{server.port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_who_is_well_says_ok(server: Server) -> None:
    assert ask(server, "/healthz") == (200, "ok\n")


def test_who_is_not_ready_says_what_is_missing(server: Server) -> None:
    assert ask(server, "/readyz") == (503, "pods are not listed yet\njobs are not listed yet\n")


def test_another_path_is_told_which_there_are(server: Server) -> None:
    assert ask(server, "/") == (404, "there are /metrics, /healthz, /readyz\n")


def test_a_process_tells_its_memory_and_its_cpu_time(server: Server) -> None:
    code, page = ask(server, "/metrics?a=b")

    assert code == 200
    assert {"process_resident_memory_bytes", "process_cpu_seconds_total"} < {
        line.partition(" ")[0] for line in page.splitlines()
    }


def test_a_client_that_says_nothing_keeps_nobody_waiting(server: Server) -> None:
    with socket.create_connection((LOOPBACK, server.port)):
        assert ask(server, "/healthz") == (200, "ok\n")


def test_a_server_that_is_stopped_listens_no_more() -> None:
    server = started()

    server.stop()

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOOPBACK, server.port), timeout=10)


def test_a_counter_is_one_series_without_the_time_of_its_birth(server: Server) -> None:
    _, page = ask(server, "/metrics")

    assert "\nmpi_operator_jobs_created_total 0.0\n" in page
    assert "_created_created" not in page
