"""
The controller's configuration, read from the command line and the environment.

Owns: the options, their defaults and the help text.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from mpirt import names
from mpirt.controller.cluster.election import Terms
from mpirt.controller.dialects.base import US
from mpirt.controller.model.spec import Settings
from mpirt.controller.monitoring.logs import FORMS
from mpirt.errors import SpecError, UsageError

_PORTS = range(65536)
_ALL, _CLAIMED = "all", "claimed"

_EPILOG = """\
Examples:
  mpirt-controller --runtime-image registry.example.com/mpirt/runtime:1.0         all namespaces, in the cluster
  mpirt-controller --namespace ml --lease-namespace ml --runtime-image ...        one namespace, with a Role
  mpirt-controller --kubeconfig ~/.kube/config --no-lease --log-format logfmt     on a workstation

Environment: every option can also be set by a variable MPIRT_NAME, such as MPIRT_RUNTIME_IMAGE; the option takes
precedence. POD_NAME is part of the identity of the lease holder, POD_NAMESPACE is the default lease namespace.

Exit code: 0 after SIGTERM or SIGINT; 241 for an invalid configuration; 244 when the lease was lost: another
process may lead, and this one must be restarted. See docs/exit-codes.md.
"""


@dataclass(frozen=True, slots=True)
class Options:
    """All settings of the controller."""

    settings: Settings
    namespace: str
    """The only namespace that is watched; empty for all."""
    kubeconfig: str
    lease: bool
    lease_name: str
    lease_namespace: str
    terms: Terms
    metrics_address: str
    metrics_port: int
    log_format: str
    workers: int


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {names.CONTROLLER} --help")


def read_options(words: Sequence[str], environment: Mapping[str, str]) -> Options:
    """Return the options. Raises UsageError."""
    found = _parser(environment).parse_args(_from_environment(environment) + list(words))
    if found.metrics_port not in _PORTS:
        raise UsageError(f"--metrics-port: invalid port {found.metrics_port} (0 to 65535)")
    if found.workers < 1:
        raise UsageError(f"--workers: must be at least 1, got {found.workers}")
    try:
        settings = Settings(
            runtime_image=found.runtime_image,
            cluster_domain=found.cluster_domain,
            gpu_label=found.gpu_label,
            gpu_resource=found.gpu_resource,
            gang=found.gang_scheduling,
            only_claimed=found.jobs == _CLAIMED,
        )
        terms = Terms(found.lease_duration, found.lease_renew_deadline, found.lease_retry)
    except SpecError as error:
        raise UsageError(str(error)) from error
    return Options(
        settings=settings,
        namespace=found.namespace,
        kubeconfig=found.kubeconfig,
        lease=found.lease,
        lease_name=found.lease_name,
        lease_namespace=found.lease_namespace,
        terms=terms,
        metrics_address=found.metrics_address,
        metrics_port=found.metrics_port,
        log_format=found.log_format,
        workers=found.workers,
    )


def usage(environment: Mapping[str, str]) -> str:
    """Return the help text."""
    return _parser(environment).format_help().replace("usage:", "Usage:", 1)


_OPTIONS = (
    "runtime-image",
    "cluster-domain",
    "gpu-label",
    "gpu-resource",
    "gang-scheduling",
    "jobs",
    "namespace",
    "kubeconfig",
    "lease-name",
    "lease-namespace",
    "lease-duration",
    "lease-renew-deadline",
    "lease-retry",
    "metrics-address",
    "metrics-port",
    "log-format",
    "workers",
)


def _from_environment(environment: Mapping[str, str]) -> list[str]:
    found = ((name, environment.get("MPIRT_" + name.upper().replace("-", "_"))) for name in _OPTIONS)
    return [f"--{name}={value}" for name, value in found if value]


def _parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=names.CONTROLLER,
        usage=f"{names.CONTROLLER} [options]",
        description="Runs MPIJobs (kubeflow.org v1 and v2beta1), TrainingJobs (kai.alibabacloud.com v1alpha1)\n"
        "and GPUTasks (falldio.com v1).",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    _add_jobs(add)
    _add_gpus(add)
    add("--namespace", default="", metavar="NAME", help="watch only this namespace (all)")
    add(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="kubeconfig (the pod's service account, or ~/.kube/config)",
    )
    add("--workers", type=int, default=4, metavar="N", help="jobs reconciled in parallel (4)")
    _add_lease(add, environment)
    add("--metrics-address", default="", metavar="IP", help="address for /metrics, /healthz and /readyz (all)")
    add("--metrics-port", type=int, default=8080, metavar="PORT", help="port for them (8080); 0: any free port")
    add("--log-format", choices=sorted(FORMS), default="logfmt", help="format of the log (logfmt)")
    add("--version", action="store_true", help=argparse.SUPPRESS)
    return parser


def _add_jobs(add: Callable[..., object]) -> None:
    add(
        "--runtime-image",
        default="",
        metavar="IMAGE",
        help="image that provides mpirt-rsh to launcher pods; without it the jobs' images must contain it",
    )
    add(
        "--cluster-domain",
        default="cluster.local",
        metavar="DOMAIN",
        help="DNS domain of the cluster (cluster.local)",
    )
    add(
        "--jobs",
        choices=(_ALL, _CLAIMED),
        default=_ALL,
        help="claimed: leave jobs alone that do not name this controller as their manager (managedBy: "
        f"{US}), beside another operator (all)",
    )
    add(
        "--gang-scheduling",
        default="",
        metavar="NAME",
        help="start each job's pods together or not at all, by Volcano (volcano) or by the scheduler of that "
        "name with the coscheduling plugin (none)",
    )


def _add_gpus(add: Callable[..., object]) -> None:
    none = Settings(runtime_image="")
    add(
        "--gpu-label",
        default=none.gpu_label,
        metavar="KEY",
        help=f"node label with the GPU model, for GPUTasks ({none.gpu_label}); for example nvidia.com/gpu.product",
    )
    add(
        "--gpu-resource",
        default=none.gpu_resource,
        metavar="NAME",
        help=f"resource that their GPUs are ({none.gpu_resource}); for example nvidia.com/gpu",
    )


def _add_lease(add: Callable[..., object], environment: Mapping[str, str]) -> None:
    namespace = environment.get("POD_NAMESPACE") or "mpirt-system"
    add(
        "--no-lease",
        dest="lease",
        action="store_false",
        help="run without leader election; only for a single process",
    )
    add("--lease-name", default=names.CONTROLLER, metavar="NAME", help=f"name of the lease ({names.CONTROLLER})")
    add("--lease-namespace", default=namespace, metavar="NAME", help=f"its namespace ({namespace})")
    terms = Terms()
    help_of = "seconds after which others may take a lease that was not renewed"
    add("--lease-duration", type=int, default=terms.duration, metavar="S", help=f"{help_of} ({terms.duration})")
    help_of = "seconds without a renewal after which the leader stops"
    add(
        "--lease-renew-deadline",
        type=float,
        default=terms.deadline,
        metavar="S",
        help=f"{help_of} ({terms.deadline:g})",
    )
    add(
        "--lease-retry",
        type=float,
        default=terms.retry,
        metavar="S",
        help=f"seconds between attempts to take or renew it ({terms.retry:g})",
    )
