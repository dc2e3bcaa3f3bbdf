"""
mpirt-controller: MPIJobs and TrainingJobs in, running MPI jobs out; and GPUTasks in, pods out.

Owns: the assembly, the keeper's files as the jobs' ConfigMaps hold them, the signals, and the one place where an
error becomes a message and an exit code.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version

from mpirt import keeper, names
from mpirt.controller.cluster.link import connect
from mpirt.controller.daemon import Daemon
from mpirt.controller.decisions.decide import JobPlanner, Planner
from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.dialects.training_job import TRAINING
from mpirt.controller.gputasks.decide import GPU_TASKS
from mpirt.controller.monitoring.logs import FORMS, LineLog, Log
from mpirt.controller.monitoring.metrics import CONTENT_TYPE, Metrics, Server, verdict
from mpirt.controller.options import Options, read_options, usage
from mpirt.errors import ExitCode, MpirtError


def keeper_files() -> dict[str, str]:
    """Return the installed files by name, in base64."""
    programs = {keeper.file_name(one): keeper.read(one) for one in keeper.ARCHITECTURES}
    return {name: b64encode(program).decode("ascii") for name, program in programs.items() if program}


def report_missing(files: Mapping[str, str], log: Log) -> None:
    """Log once which files workers will lack. Agents then upload a keeper, where there is a place for it."""
    names = [keeper.file_name(one) for one in keeper.ARCHITECTURES]
    if missing := [name for name in names if name not in files]:
        line = "keeper not installed; in workers without a place for it no command can be started"
        log.warning(line, missing=",".join(missing))


def main(argv: Sequence[str] | None = None) -> int:
    """Run until a signal arrives or the lease is lost. Return the exit code."""
    words = sys.argv[1:] if argv is None else argv
    if any(word in ("-h", "--help") for word in words):
        sys.stdout.write(usage(os.environ))
        return ExitCode.OK
    if "--version" in words:
        sys.stdout.write(f"{names.CONTROLLER} {version('mpirt')}\n")
        return ExitCode.OK
    try:
        return _run(read_options(words, os.environ), os.environ)
    except MpirtError as error:
        sys.stderr.write(f"{names.CONTROLLER}: {error}\n")
        return error.code


def _run(options: Options, environment: Mapping[str, str]) -> int:
    end = _End()
    log = LineLog(sys.stdout, FORMS[options.log_format], lambda: datetime.now(UTC))
    metrics = Metrics()
    link = connect(options.kubeconfig, count=metrics.called)
    keepers = keeper_files()
    report_missing(keepers, log)
    chosen = replace(options, settings=replace(options.settings, keepers=keepers))
    planners: list[Planner] = [JobPlanner(MPI_JOB), JobPlanner(TRAINING), GPU_TASKS]
    daemon = Daemon(planners, chosen, link, metrics, log, identity=_identity(environment))
    pages = {
        "/metrics": lambda: (200, CONTENT_TYPE, metrics.page()),
        "/healthz": lambda: verdict(daemon.unhealthy()),
        "/readyz": lambda: verdict(daemon.unready(), notes=daemon.missing()),
    }
    server = Server(options.metrics_address, options.metrics_port, pages, log)
    server.start()
    log.info("started", version=version("mpirt"), namespace=options.namespace or "all", port=server.port)
    daemon.start(lost=end.lose)
    code = end.wait()
    log.info("stopping")
    daemon.stop()
    server.stop()
    link.close()
    log.info("stopped", code=int(code))
    return code


class _End:
    """
    Waits for the end of this process: a signal that arrives once this object exists, or the loss of the lease.

    A pipe, not a lock or a queue: if a signal arrives just before Python waits for one of those, Python handles it
    only after that wait, which may never end.
    """

    _LOST = b"\0"

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        signal.set_wakeup_fd(self._write)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)

    def lose(self) -> None:
        """Report that the lease is lost."""
        os.write(self._write, self._LOST)

    def wait(self) -> ExitCode:
        """Wait, and return the exit code. Python writes the number of each signal into the pipe."""
        return ExitCode.UNREACHABLE if os.read(self._read, 1) == self._LOST else ExitCode.OK


def _identity(environment: Mapping[str, str]) -> str:
    """Return a name that no other process has, not even the next one in this pod."""
    host = environment.get("POD_NAME") or socket.gethostname()
    return f"{host}_{os.urandom(4).hex()}"
