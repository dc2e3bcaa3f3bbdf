"""
The jobs of a namespace, and what is asked of the API server about them.

Owns: which kinds of jobs can be scaled and where they are, and each request. What is made of the answers is not
its matter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from mpirt.cli.scale.progress import API_VERSION
from mpirt.errors import NoPod, Refused, UsageError
from mpirt.kubeapi.access.endpoint import find_endpoint
from mpirt.kubeapi.access.steps import Deadline
from mpirt.kubeapi.request.answers import JsonObject, NotFound
from mpirt.kubeapi.request.api import Api
from mpirt.kubeapi.request.asks import Ask
from mpirt.kubeapi.request.dial import Dialer
from mpirt.kubeapi.request.http1 import escaped
from mpirt.objects import table, text

# For each request.
_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of jobs, or of what scales them."""

    word: str
    """As people write it."""
    api_version: str
    plural: str


TRAINING_JOB = Kind("trainingjob", API_VERSION, "trainingjobs")
MPI_JOB = Kind("mpijob", "kubeflow.org/v2beta1", "mpijobs")
_KINDS = (TRAINING_JOB, MPI_JOB)
_SCALERS = {kind: Kind(kind.lower(), API_VERSION, f"{kind.lower()}s") for kind in ("ScaleIn", "ScaleOut")}


@dataclass(frozen=True, slots=True)
class Job:
    """A job that exists."""

    kind: Kind
    name: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Scale:
    """How many workers a job is to have, and the labels of their pods."""

    workers: int
    selector: str
    body: JsonObject


class Cluster:
    """One namespace."""

    def __init__(self, environ: Mapping[str, str], *, namespace: str, context: str) -> None:
        dialer = Dialer(find_endpoint(environ, context=context))
        self.namespace = namespace or dialer.endpoint.namespace
        self._api = Api(dialer)
        self._selectors: dict[str, str] = {}

    def close(self) -> None:
        self._api.close()

    def find(self, words: str) -> Job:
        """Return the job: KIND/NAME, or NAME, which may be of any kind. Raises NoPod."""
        before, slash, name = words.rpartition("/")
        kinds = [kind for kind in _KINDS if not slash or before in (kind.word, kind.plural)]
        if not kinds or not name:
            known = " or ".join(f"{kind.word}/NAME" for kind in _KINDS)
            raise UsageError(f"expected NAME, {known}, got {words!r}")
        found, refused = list[Job](), list[Refused]()
        for kind in kinds:
            try:
                found += self._read(kind, name)
            except Refused as error:
                refused.append(error)
        if len(found) > 1:
            both = " or ".join(f"{job.kind.word}/{name}" for job in found)
            raise UsageError(f"there are {len(found)} jobs of the name {name}; say which one: {both}")
        if not found and refused:
            raise refused[0]
        if not found:
            raise NoPod(
                f"there is no {' or '.join(kind.word for kind in kinds)} {name} in {self.where}; name it by -n"
            )
        return found[0]

    @property
    def where(self) -> str:
        return f"namespace {self.namespace}"

    def job(self, job: Job) -> JsonObject:
        """Read it again."""
        return self._get(job.kind, job.name)

    def scale(self, job: Job) -> Scale:
        """Read how many workers it is to have."""
        body = self._get(job.kind, job.name, "scale")
        replicas = table(body, "spec").get("replicas")
        return Scale(replicas if isinstance(replicas, int) else 0, text(table(body, "status"), "selector"), body)

    def set_scale(self, job: Job, read: Scale, workers: int) -> None:
        """Write it, if it is still as it was read; else Rejected, with 409."""
        body = {**read.body, "spec": {"replicas": workers}}
        ask = self._ask("update", job.kind, job.name, "scale")
        self._api.write("PUT", ask, json.dumps(body).encode(), Deadline(_SECONDS))

    def create(self, scaler: Mapping[str, object]) -> str:
        """Create a ScaleIn or ScaleOut; returns its name."""
        ask = self._ask("create", _SCALERS[str(scaler["kind"])])
        made = self._api.write("POST", ask, json.dumps(scaler).encode(), Deadline(_SECONDS))
        return text(table(made, "metadata"), "name")

    def scaler(self, kind: str, name: str) -> JsonObject:
        """Read a ScaleIn or ScaleOut."""
        return self._get(_SCALERS[kind], name)

    def workers(self, job: Job) -> list[JsonObject]:
        """Read the pods of the job's workers; none while its status does not say how they are found."""
        selector = self._selectors.get(job.name) or self.scale(job).selector
        if not selector:
            return []
        self._selectors[job.name] = selector
        return self._api.list_pods(self.namespace, dict, Deadline(_SECONDS), labels=selector)

    def _read(self, kind: Kind, name: str) -> list[Job]:
        try:
            return [Job(kind, name, self._get(kind, name))]
        except NotFound:
            return []

    def _get(self, kind: Kind, name: str, part: str = "") -> JsonObject:
        return self._api.get(self._ask("get", kind, name, part), Deadline(_SECONDS))

    def _ask(self, verb: str, kind: Kind, name: str = "", part: str = "") -> Ask:
        resource = f"{kind.plural}/{part}" if part else kind.plural
        path = "/".join(escaped(word) for word in (self.namespace, kind.plural, name, part) if word)
        named = f' "{name}"' if name else ""
        return Ask(
            doing=f"{verb} {resource}.{kind.api_version.partition('/')[0]}{named} in {self.where}",
            verbs=(verb,),
            resource=resource,
            namespace=self.namespace,
            name=name,
            target=f"/apis/{kind.api_version}/namespaces/{path}",
        )
