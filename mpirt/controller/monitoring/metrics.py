"""
The Prometheus metrics, and the HTTP server for /metrics, /healthz and /readyz.

Owns: the names and values of the metrics, and the server with its thread. Metrics that mpi-operator has keep its
names, so that existing dashboards work. The content of the pages is passed in.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mpirt.controller.model.actions import Action, Done, Outcome, WriteStatus
from mpirt.controller.model.conditions import Type
from mpirt.controller.monitoring.logs import Log, report_mistake
from mpirt.errors import ConfigError

CONTENT_TYPE = CONTENT_TYPE_LATEST

_KIND = ("kind",)
_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


class _Samples(Collector):
    """A gauge with labels, whose samples are computed at every scrape."""

    def __init__(
        self,
        name: str,
        meaning: str,
        labels: Sequence[str],
        samples: Callable[[], Iterable[tuple[list[str], float]]],
    ) -> None:
        self._name, self._meaning, self._labels = name, meaning, labels
        self._samples = samples

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(self._name, self._meaning, labels=self._labels)
        for labels, value in self._samples():
            family.add_metric(labels, float(value))
        yield family


class Metrics:
    """The metrics of this process, in a registry of their own."""

    def __init__(self) -> None:
        # Otherwise the library adds a creation time to each counter: mpi_operator_jobs_created_created.
        disable_created_metrics()
        self._registry = registry = CollectorRegistry()
        # Memory, CPU time and open files of this process, under the usual names.
        ProcessCollector(registry=registry)
        self._transitions = {
            Type.CREATED: Counter("mpi_operator_jobs_created", "MPI jobs created", registry=registry),
            Type.SUCCEEDED: Counter("mpi_operator_jobs_successful", "MPI jobs that succeeded", registry=registry),
            Type.FAILED: Counter("mpi_operator_jobs_failed", "MPI jobs that failed", registry=registry),
        }
        self._looks = Histogram(
            "mpirt_controller_reconcile_seconds",
            "Duration of one reconciliation of a job, including its writes",
            ["result"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._calls = Counter(
            "mpirt_controller_api_calls",
            "Requests to the API server; code 0: no response",
            ["verb", "resource", "code"],
            registry=registry,
        )

    def show(
        self,
        *,
        depth: Callable[[], float],
        jobs: Callable[[], float],
        launchers: Callable[[], Iterable[tuple[str, str]]],
        leads: Callable[[], bool],
        kinds: Callable[[], Mapping[str, bool]],
        failing: Callable[[], Mapping[str, float]],
    ) -> None:
        """Register the gauges whose values are computed at every scrape."""
        for name, meaning, value in (
            ("mpi_operator_is_leader", "Whether this process is the leader", lambda: float(leads())),
            ("mpirt_controller_queue_depth", "Jobs waiting to be reconciled", depth),
            ("mpirt_controller_jobs", "MPIJob objects in the cache", jobs),
        ):
            Gauge(name, meaning, registry=self._registry).set_function(value)
        available = "Whether objects of the kind are served in a known version, and may be read"
        failed = "For how long objects of the kind could be neither listed nor watched; 0 if they can"
        for samples in (
            # One sample per launcher Job in the cache, created by this process or not.
            _Samples(
                "mpi_operator_job_info",
                "Launcher Jobs that exist",
                ("launcher", "namespace"),
                lambda: (([name, namespace], 1.0) for namespace, name in launchers()),
            ),
            _Samples("mpirt_controller_kind_available", available, _KIND, lambda: _by_kind(kinds())),
            _Samples("mpirt_controller_watch_failing_seconds", failed, _KIND, lambda: _by_kind(failing())),
        ):
            self._registry.register(samples)

    def called(self, verb: str, resource: str, code: int) -> None:
        """Count a request to the API server."""
        self._calls.labels(verb, resource, str(code)).inc()

    def looked(self, result: str, seconds: float) -> None:
        """Record the reconciliation of a job."""
        self._looks.labels(result).observe(seconds)

    def acted(self, action: Action, came: Outcome) -> None:
        """Count the conditions that a status write has made true."""
        if isinstance(came, Done) and isinstance(action, WriteStatus):
            for kind in action.came_true & self._transitions.keys():
                self._transitions[kind].inc()

    def page(self) -> bytes:
        """Return all metrics in the format of Prometheus."""
        return generate_latest(self._registry)


def _by_kind(values: Mapping[str, float]) -> Iterator[tuple[list[str], float]]:
    return (([kind], value) for kind, value in values.items())


Page = tuple[int, str, bytes]
"""Code, content type, body."""

# A connection on which no request arrives is closed after this time, so that it does not hold a thread.
_PATIENCE = 10.0


def verdict(troubles: list[str], *, notes: Sequence[str] = ()) -> Page:
    """Return the page of a probe: 200 and "ok", or 503 and the problems; then the notes, which change neither."""
    said = "\n".join([*(troubles or ["ok"]), *notes])
    return (503 if troubles else 200), "text/plain; charset=utf-8", f"{said}\n".encode()


class Server:
    """Serves the pages until it is stopped."""

    def __init__(self, address: str, port: int, pages: Mapping[str, Callable[[], Page]], log: Log) -> None:
        try:
            self._server = _Listener((address, port), pages, log)
        except OSError as error:
            said = f"can't listen on port {port}: {error.strerror}; choose another with --metrics-port"
            raise ConfigError(said) from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Listener(ThreadingHTTPServer):
    """A listener that writes its errors to the controller's log."""

    daemon_threads = True

    def __init__(self, where: tuple[str, int], pages: Mapping[str, Callable[[], Page]], log: Log) -> None:
        self._log = log
        self._is_for_all = not where[0] and socket.has_dualstack_ipv6()
        is_ipv6 = self._is_for_all or ":" in where[0]
        self.address_family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
        super().__init__(where, _handler(pages))

    def server_bind(self) -> None:
        # Probes connect to the pod's address, which may be IPv4 or IPv6.
        if self._is_for_all:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002  the library's names
        error = sys.exception()
        # A probe that times out closes its connection; that is not worth a log line.
        if error is not None and not isinstance(error, (ConnectionError, TimeoutError)):
            report_mistake(self._log, error)


def _handler(pages: Mapping[str, Callable[[], Page]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE

        def do_GET(self) -> None:
            page = pages.get(self.path.partition("?")[0])
            missing = f"not found; available: {', '.join(pages)}\n".encode()
            code, kind, body = page() if page else (404, "text/plain", missing)
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing: a probe arrives every few seconds."""

    return Handler
