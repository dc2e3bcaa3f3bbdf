"""The port for machines."""

from __future__ import annotations

import http.client
import io
import json
import socket
import struct
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from mpirt.controller.monitoring.logs import LineLog, as_json
from mpirt.controller.monitoring.metrics import CONTENT_TYPE, Metrics, Page, Server, verdict

LOOPBACK = "127.0.0.1"

# Who closes a socket with this option ends its connection by a reset.
RESETTING = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Standing:
    """
    The server of a process that is well but not ready; one of its pages takes its time, and one fails.

    `asked` is whether a request waits for the slow page, `may_answer` lets it go on.
    """

    server: Server
    log: io.StringIO
    asked: threading.Event
    may_answer: threading.Event

    @classmethod
    def start(cls, address: str) -> Standing:
        log, asked, may_answer, metrics = io.StringIO(), threading.Event(), threading.Event(), Metrics()

        def slow() -> Page:
            asked.set()
            may_answer.wait(10)
            return verdict([])

        def fail() -> Page:
            raise KeyError("worker")

        pages = {
            "/metrics": lambda: (200, CONTENT_TYPE, metrics.page()),
            "/healthz": lambda: verdict([]),
            "/readyz": lambda: verdict(["pods are not listed yet", "jobs are not listed yet"]),
            "/slow": slow,
            "/fails": fail,
        }
        server = Server(address, 0, pages, LineLog(log, as_json, lambda: datetime.now(UTC)))
        server.start()
        return cls(server, log, asked, may_answer)


@pytest.fixture(scope="module")
def standing() -> Iterator[Standing]:
    """One for all tests: it takes a while to stop."""
    made = Standing.start(LOOPBACK)
    yield made
    made.server.stop()


@pytest.fixture
def log(standing: Standing) -> io.StringIO:
    """What it says from now on."""
    standing.log.seek(0)
    standing.log.truncate()
    return standing.log


@pytest.fixture
def server(standing: Standing) -> Server:
    return standing.server


def ask(server: Server, path: str, host: str = LOOPBACK) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{host}:{server.port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.fixture
def wait_for_answers() -> Callable[[], None]:
    """Wait until no request that has come since is being answered: those of earlier tests' servers may be."""
    earlier = frozenset(threading.enumerate())

    def wait() -> None:
        for thread in threading.enumerate():
            if thread not in earlier and "process_request_thread" in thread.name:
                thread.join(10)
                assert not thread.is_alive()

    return wait


def test_a_healthy_replica_says_ok(server: Server) -> None:
    assert ask(server, "/healthz") == (200, "ok\n")


@pytest.mark.parametrize(
    ("address", "hosts"), [("", [LOOPBACK, "[::1]"]), (LOOPBACK, [LOOPBACK]), ("::1", ["[::1]"])]
)
def test_the_server_is_found_at_every_address_that_it_listens_on(address: str, hosts: list[str]) -> None:
    """A pod of an IPv6 cluster has no other, and is probed there."""
    server = Standing.start(address).server
    try:
        found = [ask(server, "/healthz", host) for host in hosts]
    finally:
        server.stop()

    assert found == [(200, "ok\n")] * len(hosts)


def test_a_replica_that_is_not_ready_says_what_is_missing(server: Server) -> None:
    assert ask(server, "/readyz") == (503, "pods are not listed yet\njobs are not listed yet\n")


def test_another_path_is_told_which_there_are(server: Server) -> None:
    assert ask(server, "/") == (404, "not found; available: /metrics, /healthz, /readyz, /slow, /fails\n")


def test_a_process_tells_its_memory_and_its_cpu_time(server: Server) -> None:
    code, page = ask(server, "/metrics?a=b")

    assert code == 200
    assert {"process_resident_memory_bytes", "process_cpu_seconds_total"} < {
        line.partition(" ")[0] for line in page.splitlines()
    }


def test_a_client_that_says_nothing_keeps_nobody_waiting(server: Server) -> None:
    with socket.create_connection((LOOPBACK, server.port)):
        assert ask(server, "/healthz") == (200, "ok\n")


def test_nothing_is_said_of_a_client_that_goes_away(
    standing: Standing,
    log: io.StringIO,
    wait_for_answers: Callable[[], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.create_connection((LOOPBACK, standing.server.port)) as client:
        client.sendall(b"GET /slow HTTP/1.0\r\n\r\n")
        assert standing.asked.wait(10)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETTING)
    standing.may_answer.set()
    wait_for_answers()

    assert (log.getvalue(), capsys.readouterr().err) == ("", "")


def test_a_page_that_fails_is_a_line_in_the_log(
    server: Server, log: io.StringIO, wait_for_answers: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(http.client.RemoteDisconnected):
        ask(server, "/fails")
    wait_for_answers()

    [line] = log.getvalue().splitlines()
    said = json.loads(line)
    assert (said["level"], said["message"]) == ("error", "internal error; please report it")
    assert said["error"].startswith("KeyError: 'worker' at ")
    assert capsys.readouterr().err == ""


def test_a_server_that_is_stopped_listens_no_more() -> None:
    server = Standing.start(LOOPBACK).server
    server.stop()

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOOPBACK, server.port), timeout=10)


def test_a_counter_is_one_series_without_the_time_of_its_birth(server: Server) -> None:
    _, page = ask(server, "/metrics")

    assert "\nmpi_operator_jobs_created_total 0.0\n" in page
    assert "_created_created" not in page
