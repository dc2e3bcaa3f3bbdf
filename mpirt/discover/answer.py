"""
From the pods of a job to what a call prints, without I/O: the same by the API server and by a switchboard.

Owns: which pods are too few to be believed, and the lines about workers that are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mpirt import names
from mpirt.discover.discovery import Criteria, Found, Pod, discover
from mpirt.discover.drivers import Call
from mpirt.discover.options import Options, Selection
from mpirt.discover.patience import missing
from mpirt.errors import NoPod


def criteria_of(options: Options, environ: Mapping[str, str], own_pod: str) -> Criteria:
    """What a pod must be to be a host."""
    container = environ.get(names.CONTAINER_VARIABLE, "")
    return Criteria(slots=options.slots, revision=options.revision, own_pod=own_pod, container=container)


def hosts_among(
    pods: Sequence[Pod], selection: Selection, *, namespace: str, options: Options, criteria: Criteria, call: Call
) -> Found:
    """
    The hosts among the pods of the selection.

    No pods at all are an empty list only if the job was found before. Raises NoPod, and what discover() does.
    """
    if not pods and not call.has_hosts and (options.wait or options.after is None):
        raise NoPod(f"{selection.asked}: no pod in namespace {namespace} belongs to it; is the name right?")
    return discover(pods, criteria, asked=selection.asked)


def is_verbose(options: Options, environ: Mapping[str, str]) -> bool:
    """Whether the user wants to know why workers are left out."""
    return options.verbose or environ.get(names.LOG_VARIABLE) == "debug"


def remarks(found: Found, call: Call, *, verbose: bool) -> list[str]:
    """The lines for stderr."""
    if verbose:
        return [f"left out: {each}" for each in found.left_out]
    if not found.hosts and call.patience.enough:
        return [f"no hosts: {missing(found, call.patience.enough)}"]
    return []
