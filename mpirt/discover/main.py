"""
mpirt-discover: prints the hosts that a job may use at this moment, by a request to the API server.

Owns: the assembly, the one place where an error becomes a line and a code, and the help. What is imported here
horovodrun pays for every second while no switchboard answers; a test pins it. images/agent/discover.c asks the
switchboard first, and starts this program where that has no answer.

Nothing is printed until everything is known, and then all of it at once.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, MutableMapping, Sequence

from mpirt import names
from mpirt.discover.discovery import Found
from mpirt.discover.drivers import Call, call_by
from mpirt.discover.job import ApiPods, job_at_hand, job_of_pod, own_pod
from mpirt.discover.options import Options, read_options, wants_text
from mpirt.discover.output import Alarm, Progress, say
from mpirt.discover.patience import ask, hosts_among, remarks
from mpirt.errors import ExitCode, MpirtError, internal_error
from mpirt.hosts import render
from mpirt.kubeapi.access.endpoint import find_endpoint
from mpirt.kubeapi.access.steps import Deadline
from mpirt.kubeapi.request.api import Api
from mpirt.kubeapi.request.dial import Dialer

_INTERRUPTED = 130
_STDOUT = 1
# More than the switchboard is asked for.
_LONGEST_QUESTION = 2.0

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


def _answer(words: Sequence[str], environ: MutableMapping[str, str], alarm: Alarm) -> bytes:
    """What is to be printed."""
    spent, why = _asked_before(environ)
    match wants_text(words):
        case "":
            return _hosts(read_options(words, environ), environ, alarm, spent=spent, why=why)
        case "--help":
            return _HELP.encode()
        case _:
            # Brings email and zipfile, which no call needs.
            from importlib.metadata import version  # noqa: PLC0415

            return f"{names.DISCOVER} {version('mpirt')}\n".encode()


def _asked_before(environ: MutableMapping[str, str]) -> tuple[float, str]:
    """How many seconds the question to the switchboard has taken, and why that has no answer, if there is one."""
    begun, _, why = environ.pop(names.ASKED_VARIABLE, "").partition(" ")
    spent = time.monotonic() - int(begun) / 1000 if begun.isdecimal() else 0.0
    return min(max(spent, 0.0), _LONGEST_QUESTION), why


def _hosts(
    options: Options, environ: Mapping[str, str], alarm: Alarm, *, spent: float = 0.0, why: str = ""
) -> bytes:
    call = call_by(os.getppid(), options, environ)
    alarm.set(call.patience.seconds, spent=spent)
    if options.verbose and why:
        say(f"pods from the API server: {why}")
    progress = Progress(every=options.verbose)
    try:
        found = _find(options, environ, call, progress, spent=spent)
    finally:
        progress.clear()
        call.is_over()
    for line in remarks(found, call.patience, verbose=options.verbose):
        say(line)
    return render(found.hosts, options.form).encode()


def _find(options: Options, environ: Mapping[str, str], call: Call, progress: Progress, *, spent: float) -> Found:
    host = own_pod(environ)
    selection = options.selection or job_at_hand(environ, host)
    endpoint = find_endpoint(environ)
    namespace = options.namespace or endpoint.namespace
    pods = ApiPods(Api(Dialer(endpoint)), namespace)
    criteria, patience = options.criteria(environ, host), call.patience

    def question(deadline: Deadline) -> Found:
        nonlocal selection
        if selection is None:
            selection = job_of_pod(environ, host, pods, deadline)
        selected = pods.select(selection, deadline)
        return hosts_among(selected, selection, namespace=namespace, criteria=criteria, patience=patience)

    return ask(
        question, patience, clock=time.monotonic, sleep=time.sleep, jitter=_jitter, tell=progress.tell,
        spent=spent,
    )  # fmt: skip


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
