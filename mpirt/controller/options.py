"""
The controller's configuration, read from the command line and the environment.

Owns: the options, their defaults and the help text.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import NoReturn

from mpirt import names
from mpirt.controller.cluster.election import Terms
from mpirt.controller.dialects.base import US
from mpirt.controller.model.spec import RuntimeVolume, Settings
from mpirt.controller.monitoring.logs import FORMS
from mpirt.errors import SpecError, UsageError

_PORTS = range(65536)
_ALL, _CLAIMED = "all", "claimed"
_SHARED, _EXCLUSIVE = "shared", "exclusive"

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


@dataclass(frozen=True, slots=True)
class _Option:
    """An option with a value, which is of the default's type; a variable of the environment may set it, too."""

    name: str
    metavar: str | None
    default: str | float
    help: str
    choices: Sequence[str] | None = None

    @property
    def variable(self) -> str:
        return "MPIRT_" + self.name.upper().replace("-", "_")


_LEASE = "lease-name"


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
            runtime_volume=RuntimeVolume(found.runtime_volume),
            cluster_domain=found.cluster_domain,
            gpu_label=found.gpu_label,
            gpu_resource=found.gpu_resource,
            gang=found.gang_scheduling,
            only_claimed=found.jobs == _CLAIMED,
            exclusive_cpus=found.guaranteed_cpus == _EXCLUSIVE,
        )
        terms = Terms(found.lease_duration, found.lease_renew_deadline, found.lease_retry)
    except SpecError as error:
        raise UsageError(str(error)) from error
    plain = {field.name: getattr(found, field.name) for field in fields(Options) if hasattr(found, field.name)}
    return Options(settings=settings, terms=terms, **plain)


def usage(environment: Mapping[str, str]) -> str:
    """Return the help text."""
    return _parser(environment).format_help().replace("usage:", "Usage:", 1)


def _from_environment(environment: Mapping[str, str]) -> list[str]:
    found = ((option.name, environment.get(option.variable)) for option in _options(environment))
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
    for one in _options(environment):
        if one.name == _LEASE:
            no_lease = "run without leader election; only for a single process"
            parser.add_argument("--no-lease", dest="lease", action="store_false", help=no_lease)
        parser.add_argument(
            f"--{one.name}",
            type=type(one.default),
            metavar=one.metavar,
            default=one.default,
            choices=one.choices,
            help=one.help,
        )
    parser.add_argument("--version", action="store_true", help=argparse.SUPPRESS)
    return parser


def _options(environment: Mapping[str, str]) -> list[_Option]:
    """Return the options in the order of the help text, which names each default in brackets."""
    own, terms, namespace = Settings(runtime_image=""), Terms(), environment.get("POD_NAMESPACE") or "mpirt-system"
    image = "image that provides mpirt-rsh to launcher pods; without it the jobs' images must contain it"
    volume = "mount that image (image), or copy it by an init container (copy); auto: by what the nodes can (auto)"
    jobs = (
        "claimed: leave jobs alone that do not name this controller as their manager (managedBy: "
        f"{US}), beside another operator (all)"
    )
    gangs = (
        "start each job's pods together or not at all, by Volcano (volcano) or by the scheduler of that "
        "name with the coscheduling plugin (none)"
    )
    cpus = "exclusive: kubelets run the CPU manager policy static; ranks are bound in Guaranteed pods (shared)"
    label = f"node label with the GPU model, for GPUTasks ({own.gpu_label}); for example nvidia.com/gpu.product"
    resource = f"resource that their GPUs are ({own.gpu_resource}); for example nvidia.com/gpu"
    duration = f"seconds after which others may take a lease that was not renewed ({terms.duration})"
    deadline = f"seconds without a renewal after which the leader stops ({terms.deadline:g})"
    retry = f"seconds between attempts to take it; the leader renews it after {terms.renewal:g} ({terms.retry:g})"
    return [
        _Option("runtime-image", "IMAGE", "", image),
        _Option("runtime-volume", None, own.runtime_volume.value, volume, [each.value for each in RuntimeVolume]),
        _Option("cluster-domain", "DOMAIN", "cluster.local", "DNS domain of the cluster (cluster.local)"),
        _Option("jobs", None, _ALL, jobs, (_ALL, _CLAIMED)),
        _Option("gang-scheduling", "NAME", "", gangs),
        _Option("guaranteed-cpus", None, _SHARED, cpus, (_SHARED, _EXCLUSIVE)),
        _Option("gpu-label", "KEY", own.gpu_label, label),
        _Option("gpu-resource", "NAME", own.gpu_resource, resource),
        _Option("namespace", "NAME", "", "watch only this namespace (all)"),
        _Option("kubeconfig", "FILE", "", "kubeconfig (the pod's service account, or ~/.kube/config)"),
        _Option("workers", "N", 4, "jobs reconciled in parallel (4)"),
        _Option(_LEASE, "NAME", names.CONTROLLER, f"name of the lease ({names.CONTROLLER})"),
        _Option("lease-namespace", "NAME", namespace, f"its namespace ({namespace})"),
        _Option("lease-duration", "S", terms.duration, duration),
        _Option("lease-renew-deadline", "S", terms.deadline, deadline),
        _Option("lease-retry", "S", terms.retry, retry),
        _Option("metrics-address", "IP", "", "address for /metrics, /healthz and /readyz (all)"),
        _Option("metrics-port", "PORT", 8080, "port for them (8080); 0: any free port"),
        _Option("log-format", None, "logfmt", "format of the log (logfmt)", sorted(FORMS)),
    ]
