"""
mpirt-discover: prints the hosts that a job may use at this moment.

Owns: the assembly, the one place where an error becomes a line and a code, and the help. What is imported here
horovodrun pays for every second; a test pins it.

Nothing is printed until everything is known, and then all of it at once.
"""

from __future__ import annotations

import os
import sys
import time
from functools import cache

from mpirt import names
from mpirt.discover.alarm import Alarm
from mpirt.discover.boardpods import BoardPods
from mpirt.discover.discovery import Criteria, check_older_have_ended, discover
from mpirt.discover.drivers import Mark, find_driver, folders
from mpirt.discover.options import read_options, wants_text
from mpirt.discover.ownjob import job_at_hand, job_of_pod, own_pod
from mpirt.discover.patience import Patience, ask, missing
from mpirt.discover.progress import Progress, say
from mpirt.errors import ExitCode, MpirtError, NoPod, internal_error
from mpirt.hosts import render
from mpirt.kubeapi.access.endpoint import find_endpoint
from mpirt.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mpirt.discover.discovery import Found
    from mpirt.discover.options import Options
    from mpirt.discover.source import Pods
    from mpirt.kubeapi.access.endpoint import Endpoint
    from mpirt.kubeapi.access.steps import Deadline

_INTERRUPTED = 130
_STDOUT = 1
_REFUSALS_PASS = 10.0

_HELP = """\
Usage: mpirt-discover [options]

Prints the workers of a job that may be used now: Ready, not being deleted, not draining; in the order of their
numbers. It prints all of them or nothing.

Which job (one of these; in a launcher pod none is needed):
  --job NAME             pods whose label mpirt.dev/job, training.kubeflow.org/job-name or mpi-job-name is NAME,
                         without launchers
  --statefulset NAME     pods of that StatefulSet
  -l, --selector LABELS  pods with these labels, as kubectl takes them
  -n, --namespace NAME   another namespace than the kubeconfig's or the pod's own

What to print:
  --format FORM          horovod (default), hostfile, hydra or json
  --slots N              slots of every host; without it the pod's annotation mpirt.dev/slots, else the GPUs of its
                         container, else 1
  --revision HASH        only pods with this label controller-revision-hash

How long:
  --timeout S            end after S seconds with what is known then (4)
  --wait N [--timeout S] wait until N workers are Ready, for S seconds at most (600)
  --wait N --after LABELS
                         wait, too, until pods with these labels that are older than our own have ended; N may
                         be 0 then

  -v, --verbose          say on stderr why each of the other pods is left out
  -h, --help, --version

Examples:
  horovodrun --min-np 2 --host-discovery-script mpirt-discover python train.py      in a launcher pod
  mpirt-discover --statefulset worker --slots 4
  mpirt-discover --job train --wait 4 --timeout 300 --format hostfile > hosts && mpirun --hostfile hosts ./a.out
  mpirt-discover -l app=worker --format json -v

Environment:
  MPIRT_JOB, MPIRT_STATEFULSET, MPIRT_SELECTOR   as the options; one of them
  MPIRT_POD_LABELS                the launcher pod's labels from the downward API (/etc/podinfo/labels)
  MPIRT_CONTAINER                 the container whose GPUs count, where a pod has several
  MPIRT_POD                       the name of our own pod, for --after
  MPIRT_DISCOVER_TIMEOUT          as --timeout without --wait
  MPIRT_DISCOVER_FIRST_TIMEOUT    how long the first call of a horovodrun waits for a first host (60); 0: no call
                                  waits
  KUBECONFIG                      the cluster; without it ~/.kube/config, or the pod's own service account
  HTTPS_PROXY, NO_PROXY           the way to it, as for kubectl
  MPIRT_SWITCHBOARD               off: ask the API server even where a switchboard of mpirt-rsh knows the pods
  MPIRT_LOG=debug                 as --verbose

Exit code: 0 when the list is the whole truth, an empty one too; otherwise it isn't known, nothing is printed, and
the code, from 240 on, says why: see docs/exit-codes.md.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the hosts. Returns the code to exit with."""
    code = _main(sys.argv[1:] if argv is None else argv)
    if argv is None:
        # All is written; Python's own tidying up would cost every call milliseconds, and wait for a name server.
        os._exit(code)
    return code


def _main(words: Sequence[str]) -> int:
    """The one place where an error becomes a line and a code."""
    alarm = Alarm()
    try:
        # Within the other: an alarm that rings while an error is on its way out is one, too.
        with alarm:
            answer = _answer(words, os.environ, alarm)
            # How long its reader takes is the reader's business.
            alarm.off()
            _print(answer)
            return ExitCode.OK
    except MpirtError as error:
        say(str(error))
        return int(error.code)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:  # noqa: BLE001  a launcher's user gets a line to report, not a traceback
        say(internal_error(error))
        return ExitCode.INTERNAL
    finally:
        alarm.off()


def _answer(words: Sequence[str], environ: Mapping[str, str], alarm: Alarm) -> bytes:
    """What is to be printed."""
    match wants_text(words):
        case "":
            return _hosts(read_options(words, environ), environ, alarm)
        case "--help":
            return _HELP.encode()
        case _:
            # Brings email and zipfile, which no call needs.
            from importlib.metadata import version  # noqa: PLC0415

            return f"{names.DISCOVER} {version('mpirt')}\n".encode()


class Call(Value):
    """How this call is to be answered."""

    patience: Patience
    mark: Mark | None = None
    """What to leave for the calls after it, if it is the first."""
    has_hosts: bool = False
    """Whether the job has been found before, so that no pods at all means no hosts."""


def _hosts(options: Options, environ: Mapping[str, str], alarm: Alarm) -> bytes:
    call = _call(options, environ)
    alarm.set(call.patience.seconds)
    verbose = options.verbose or environ.get(names.LOG_VARIABLE) == "debug"
    progress = Progress(every=verbose)
    try:
        found = _find(options, environ, call, progress, tell=say if verbose else _say_nothing)
    finally:
        progress.clear()
        if call.mark is not None:
            call.mark.make()
    if verbose:
        for each in found.left_out:
            say(f"left out: {each}")
    elif not found.hosts and call.patience.enough:
        say(f"no hosts: {missing(found, call.patience.enough)}")
    return render(found.hosts, options.form).encode()


def _call(options: Options, environ: Mapping[str, str]) -> Call:
    """Know whether horovodrun calls for the first time: it ends the job when that fails."""
    seconds, first = options.seconds, options.first_seconds
    if options.wait or options.after is not None:
        return Call(
            Patience(
                options.wait_seconds, seconds, enough=options.wait, insists=True, retries=True,
                refusals_pass=_REFUSALS_PASS,
            )
        )  # fmt: skip
    if not first:
        return Call(Patience(seconds, seconds))
    driver = find_driver()
    if driver is None:
        # Nobody knows, so it does the one and the other: it waits for a host, within the deadline.
        return Call(Patience(seconds, seconds, enough=1, retries=True))
    mark = Mark(driver, folders(environ))
    if mark.is_there():
        return Call(Patience(seconds, seconds), has_hosts=True)
    if not mark.can_be_made():
        first -= driver.age
        if first <= 0:
            return Call(Patience(seconds, seconds))
    patience = Patience(max(seconds, first), seconds, enough=1, retries=True, refusals_pass=_REFUSALS_PASS)
    return Call(patience, mark=mark)


def _find(
    options: Options, environ: Mapping[str, str], call: Call, progress: Progress, *, tell: Callable[[str], None]
) -> Found:
    host = own_pod(environ)
    selection = options.selection or job_at_hand(environ, host)
    endpoint = find_endpoint(environ)
    namespace = options.namespace or endpoint.namespace
    container = environ.get(names.CONTAINER_VARIABLE, "")
    api = cache(lambda: _api_pods(endpoint, namespace, container))
    pods = BoardPods(environ, namespace, api, container=container, tell=tell)
    criteria = Criteria(slots=options.slots, revision=options.revision, own_pod=host)

    def question(deadline: Deadline) -> Found:
        nonlocal selection
        if selection is None:
            selection = job_of_pod(environ, host, pods, deadline)
        if options.after is not None:
            check_older_have_ended(pods.select(options.after, deadline), options.own)
        selected = pods.select(selection, deadline)
        if not selected and not call.has_hosts and (options.wait or options.after is None):
            raise NoPod(f"{selection.asked}: no pod in namespace {namespace} belongs to it; is the name right?")
        return discover(selected, criteria, asked=selection.asked)

    return ask(question, call.patience, clock=time.monotonic, sleep=time.sleep, jitter=_jitter, tell=progress.tell)


def _api_pods(endpoint: Endpoint, namespace: str, container: str) -> Pods:
    # They bring TLS, which an answer of the switchboard does without.
    from mpirt.discover.source import ApiPods  # noqa: PLC0415
    from mpirt.kubeapi.request.api import Api  # noqa: PLC0415
    from mpirt.kubeapi.request.dial import Dialer  # noqa: PLC0415

    return ApiPods(Api(Dialer(endpoint)), namespace, container=container)


def _say_nothing(_line: str) -> None:
    """Nobody wants to know."""


def _print(data: bytes) -> None:
    """Write all of it."""
    try:
        while data:
            data = data[os.write(_STDOUT, data) :]
    except OSError as error:
        raise MpirtError(f"the list can't be written to stdout: {error.strerror}") from error


def _jitter() -> float:
    # The random module costs a third of what ssl does.
    return int.from_bytes(os.urandom(4)) / 2**32
