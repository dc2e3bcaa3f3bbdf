"""
Requests to the API server without a kubectl for each of them, which takes a processor for 70 ms.

Owns: the words of `kubectl get` that tests use, where each kind is found, and what kubectl adds or leaves out. A
kubeconfig that holds no token, such as somebody else's with a plugin, is left to kubectl.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import yaml

from testbed.kube.errors import ClusterError
from testbed.kube.wait import until
from testbed.kube.way import JSON, WITHIN, Way

Body = dict[str, Any]

_KNOWN_FOR = 10.0
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_STRICTLY = urlencode({"fieldManager": "kubectl-client-side-apply", "fieldValidation": "Strict"})
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_SELECTORS = {"--selector": "labelSelector", "--field-selector": "fieldSelector"}


class Unserved(ClusterError):
    """The API server has nothing at a path: a kind, or a version of it, that was there before."""


@dataclass(frozen=True, slots=True)
class Words:
    """What `kubectl get` is asked for."""

    kinds: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    """Kinds with names, as in pod/worker-0."""
    query: tuple[tuple[str, str], ...] = ()
    everywhere: bool = False
    may_be_missing: bool = False
    with_managed_fields: bool = False

    @property
    def is_one(self) -> bool:
        """Whether the answer is an object and no list."""
        return (len(self.kinds), len(self.names)) == (1, 1) or (not self.kinds and len(self.pairs) == 1)


def parsed(words: Sequence[str]) -> Words:
    """The words as data; a word that no test has used so far is an error."""
    options, others = [word for word in words if word.startswith("-")], [word for word in words if word[0] != "-"]
    query, flags = [], set()
    for option in options:
        name, equals, value = option.partition("=")
        if equals and name in _SELECTORS:
            query.append((_SELECTORS[name], value))
        else:
            flags.add(option)
    if unknown := flags - {"--all-namespaces", "--ignore-not-found", "--show-managed-fields"}:
        raise ValueError(f"get {' '.join(words)}: {', '.join(unknown)} is not known here; call kubectl itself")
    pairs = [(kind, name) for kind, slash, name in (word.partition("/") for word in others) if slash]
    kinds = () if pairs else tuple(others[0].split(","))
    return Words(
        kinds=kinds,
        names=() if pairs else tuple(others[1:]),
        pairs=tuple(pairs),
        query=tuple(query),
        everywhere="--all-namespaces" in flags,
        may_be_missing="--ignore-not-found" in flags,
        with_managed_fields="--show-managed-fields" in flags,
    )


@dataclass(frozen=True, slots=True)
class Resource:
    """Where the objects of a kind are found."""

    root: str
    """The path of its group and version."""
    plural: str
    is_namespaced: bool
    is_in_all: bool = False
    """Whether `get all` shows it."""

    def path(self, namespace: str, name: str = "") -> str:
        inside = f"/namespaces/{quote(namespace)}" if self.is_namespaced and namespace else ""
        return f"{self.root}{inside}/{self.plural}" + (f"/{quote(name)}" if name else "")


@dataclass
class Direct:
    """Objects of one API server. It may be used from any thread."""

    way: Way
    _resources: dict[str, Resource] = field(default_factory=dict)
    _discover_at: float = 0.0

    def get(self, namespace: str, words: Sequence[str]) -> Any:
        """An object, or a list of objects, as `kubectl get --output=json` shows them."""
        asked = parsed(words)
        try:
            return self._get(namespace, asked)
        except Unserved:
            # Another version is served now.
            self._resources.clear()
            return self._get(namespace, asked)

    def _get(self, namespace: str, asked: Words) -> Any:
        found = [body for one in self._wanted(namespace, asked) if (body := self._object(one, asked)) is not None]
        if not asked.names and not asked.pairs:
            everywhere = "" if asked.everywhere else namespace
            paths = [one.path(everywhere) for kind in asked.kinds for one in self._in_category(kind)]
            found = [item for path in paths for item in self._list(path, asked)]
        if not asked.with_managed_fields:
            for body in found:
                body["metadata"].pop("managedFields", None)
        return found[0] if asked.is_one and found else found

    def delete(self, namespace: str, kinds: str, name: str = "", *, grace: int | None = None) -> None:
        """Delete an object, or all of these kinds in a namespace, which are on their way out then."""
        options = {"propagationPolicy": "Background", **({} if grace is None else {"gracePeriodSeconds": grace})}
        for kind in kinds.split(","):
            path = self._resource(kind).path(namespace, name)
            _good(path, *self._ask(path, method="DELETE", body=options))

    def create(self, namespace: str, manifest: Body) -> bool:
        """Create an object as `kubectl apply` does, which may change it later; False if there is one already."""
        resource = self._resource(f"{manifest['apiVersion']}/{manifest['kind']}")
        told = {"namespace": namespace, "annotations": {}} if resource.is_namespaced else {"annotations": {}}
        metadata = told | manifest["metadata"]
        text = json.dumps(manifest | {"metadata": metadata}, separators=(",", ":"), sort_keys=True) + "\n"
        metadata["annotations"] = {**metadata["annotations"], _LAST_APPLIED: text}
        path = f"{resource.path(metadata.get('namespace', ''))}?{_STRICTLY}"
        status, answer = self._ask(path, method="POST", body=manifest | {"metadata": metadata})
        if status == HTTPStatus.CONFLICT and answer.get("reason") == "AlreadyExists":
            return False
        _good(path, status, answer)
        return True

    def _wanted(self, namespace: str, asked: Words) -> Iterator[str]:
        """The paths of the objects that are named."""
        pairs = asked.pairs or [(kind, name) for kind in asked.kinds for name in asked.names]
        for kind, name in pairs:
            yield self._resource(kind).path(namespace, name)

    def _object(self, path: str, asked: Words) -> Body | None:
        status, body = self._ask(path)
        if status == HTTPStatus.NOT_FOUND and asked.may_be_missing:
            return None
        return _good(path, status, body)

    def _list(self, path: str, asked: Words) -> list[Body]:
        query = f"?{urlencode(asked.query)}" if asked.query else ""
        found = _good(path, *self._ask(path + query))
        told = {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
        return [told | item for item in found["items"]]

    def _in_category(self, word: str) -> list[Resource]:
        """The resources of a category, such as all, or the one of a kind."""
        if word != "all":
            return [self._resource(word)]
        self._resource("pods")
        return [one for name, one in self._resources.items() if one.is_in_all and name == one.plural]

    def _resource(self, kind: str) -> Resource:
        """By its name in any form; looked up again after a while, or if it is not known, for CRDs come and go."""
        if kind.lower() not in self._resources or time.monotonic() > self._discover_at:
            self._resources = dict(self._discovered())
            self._discover_at = time.monotonic() + _KNOWN_FOR
        try:
            return self._resources[kind.lower()]
        except KeyError:
            raise ClusterError(f'the server doesn\'t have a resource type "{kind}"') from None

    def _discovered(self) -> Iterator[tuple[str, Resource]]:
        # What comes later has the last word: the core, and of each group the version that is preferred.
        for root in ("/apis", "/api"):
            for group in reversed(_good(root, *self._ask(root, accept=_DISCOVERY))["items"]):
                for version in reversed(group["versions"]):
                    yield from _resources(root, group["metadata"].get("name", ""), version)

    def _ask(
        self, path: str, accept: str = JSON, method: str = "GET", body: Body | None = None
    ) -> tuple[int, Body]:
        """The status and the answer. Who is told to come again, as for a kind that was just made, does so."""
        answers: list[tuple[int, Body]] = []

        def is_final() -> bool:
            answers[:] = [self._ask_once(method, path, accept, body)]
            return answers[0][0] != HTTPStatus.TOO_MANY_REQUESTS

        until(is_final, within=WITHIN, what=f"an answer to {method} {path}", instead=lambda: answers)
        return answers[0]

    def _ask_once(self, method: str, path: str, accept: str, body: Body | None) -> tuple[int, Body]:
        try:
            text = None if body is None else json.dumps(body)
            status, content = self.way.send(method, path, text, accept=accept)
            if status == HTTPStatus.NOT_FOUND and not content.startswith(b"{"):
                raise Unserved(f"{method} {path}: {content.decode().strip()}")
            return status, json.loads(content)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ClusterError(f"{method} {path}: {error or type(error).__name__}") from error


def direct(kubeconfig: Path) -> Direct | None:
    """The one to the cluster of a kubeconfig; None if that holds no token."""
    return _direct(kubeconfig.read_text(encoding="utf-8"))


@lru_cache(maxsize=64)
def _direct(text: str) -> Direct | None:
    config = yaml.safe_load(text)
    clusters, users = ({each["name"]: each[part] for each in config[f"{part}s"]} for part in ("cluster", "user"))
    [context] = [one["context"] for one in config["contexts"] if one["name"] == config["current-context"]]
    cluster, token = clusters[context["cluster"]], users[context["user"]].get("token")
    if token is None or "certificate-authority-data" not in cluster:
        return None
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return Direct(Way(cluster["server"], token, ssl.create_default_context(cadata=authority)))


def _resources(root: str, group: str, version: Body) -> Iterator[tuple[str, Resource]]:
    """Those of a group's version, by each of their names."""
    at = f"{root}/{group}/{version['version']}" if group else f"{root}/{version['version']}"
    for one in version["resources"]:
        plural = one["resource"]
        made = Resource(at, plural, one["scope"] == "Namespaced", "all" in one.get("categories", ()))
        names = {plural, one.get("singularResource", ""), *one.get("shortNames", ())}
        names |= {f"{plural}.{group}", f"{plural}.{version['version']}.{group}"} if group else set()
        # As a manifest names it.
        names.add(f"{at.split('/', 2)[2]}/{one['responseKind']['kind']}".lower())
        yield from ((name, made) for name in names if name)


def _good(path: str, status: int, body: Body) -> Body:
    if status >= HTTPStatus.BAD_REQUEST:
        raise ClusterError(f"{path}: {status} ({body.get('reason')}): {body.get('message')}")
    return body
