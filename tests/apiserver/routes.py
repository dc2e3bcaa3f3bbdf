"""
The truthful answers of the loopback API server: what a working one says about pods.

Owns: which operation a request is, who may do it, and get, list with pages, and watch. exec is server.py's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.apiserver.connection import Exchange, Request
from tests.apiserver.faults import CHUNKED, Answer, Fault, Status, in_chunk, status_object
from tests.apiserver.pods import Pod
from tests.apiserver.world import Selection, World

ACCOUNT = "system:serviceaccount:ml:launcher"
EVERYTHING = frozenset({
    ("get", "pods"), ("list", "pods"), ("watch", "pods"), ("get", "pods/exec"), ("create", "pods/exec"),
})  # fmt: skip


@dataclass(frozen=True)
class Operation:
    """What a request wants, in the words of server.on()."""

    name: str
    namespace: str = ""
    pod: str = ""


def operation(request: Request, base_path: str) -> Operation | None:
    """Read the request's path; None when nothing lives there."""
    words = request.words
    base = [word for word in base_path.split("/") if word]
    if words[: len(base)] != base:
        return None
    match words[len(base) :]:
        case ["api", "v1", "namespaces", namespace, "pods"]:
            watches = request.query.get("watch") in ("1", "true")
            return Operation("watch" if watches else "list", namespace)
        case ["api", "v1", "namespaces", namespace, "pods", pod]:
            return Operation("get", namespace, pod)
        case ["api", "v1", "namespaces", namespace, "pods", pod, "exec"]:
            return Operation("exec", namespace, pod)
    return None


def refusal(wanted: Operation, rules: frozenset[tuple[str, str]]) -> Status | None:
    """What the Role lacks, in the words that Kubernetes 1.36 has for it; None when it lacks nothing."""
    if wanted.name == "exec":
        if ("get", "pods/exec") not in rules:
            return _forbidden("get", "pods/exec", wanted)
        if ("create", "pods/exec") not in rules:
            return Status(403, "Forbidden", f'pods "{wanted.pod}" is forbidden: ')
        return None
    return None if (wanted.name, "pods") in rules else _forbidden(wanted.name, "pods", wanted)


def truth(wanted: Operation, request: Request, world: World) -> Fault | None:
    """The answer to a get or a list, or a no; None for what takes longer."""
    if wanted.name == "get":
        found = world.get(wanted.namespace, wanted.pod)
        return _json(found) if found else _not_found(wanted.pod)
    return _list(wanted, request, world) if wanted.name == "list" else None


def watch(wanted: Operation, exchange: Exchange, world: World) -> None:
    """Stream what happens to the selection until the time that was asked for is over."""
    connection, request = exchange.connection, exchange.request
    after = int(request.query.get("resourceVersion", "0"))
    until = time.monotonic() + float(request.query.get("timeoutSeconds", "1800"))
    bookmarks = request.query.get("allowWatchBookmarks") == "true"
    selection = selected_by(wanted, request)
    if world.is_too_old(after):
        expired(after).play(exchange)
        return
    connection.send(CHUNKED)
    while (changes := world.changes(selection, after, until)) is not None:
        for change in changes:
            if change.type != "BOOKMARK" or bookmarks:
                connection.send(in_chunk(event(change.type, change.pod)))
            after = change.version
        if not changes:
            connection.send(in_chunk(event("ERROR", status_object(410, "Expired", _too_old(after)))))
            break
    connection.send(b"0\r\n\r\n")


def event(kind: str, thing: Mapping[str, Any]) -> bytes:
    """One line of a watch."""
    return json.dumps({"type": kind, "object": thing}).encode() + b"\n"


def expired(version: int) -> Status:
    """410, as the API server says it before a watch begins."""
    return Status(410, "Expired", _too_old(version))


def _list(wanted: Operation, request: Request, world: World) -> Fault:
    token, limit = request.query.get("continue", ""), int(request.query.get("limit", "0"))
    rest: list[Pod] | None
    if token:
        version, rest = token.split(":")[0], world.resume(token)
        if rest is None:
            said = "The provided continue parameter is too old to display a consistent list result."
            return Status(410, "Expired", said)
    else:
        version, rest = world.select(selected_by(wanted, request))
    items, rest = (rest[:limit], rest[limit:]) if limit else (rest, [])
    metadata = {"resourceVersion": version}
    if rest:
        metadata["continue"] = f"{version}:{len(rest)}"
        world.keep(metadata["continue"], rest)
    return _json({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items})


def selected_by(wanted: Operation, request: Request) -> Selection:
    """The pods that a request is about."""
    fields = [word.split("=", 1) for word in request.query.get("fieldSelector", "").split(",") if word]
    labels = [word.split("=", 1) for word in request.query.get("labelSelector", "").split(",") if word]
    return Selection(
        wanted.namespace,
        wanted.pod,
        tuple((label, value) for label, value in labels),
        tuple((field, value) for field, value in fields),
    )


def _json(value: Mapping[str, Any]) -> Answer:
    return Answer(200, json.dumps(value).encode())


def _not_found(pod: str) -> Status:
    return Status(404, "NotFound", f'pods "{pod}" not found')


def _too_old(version: int) -> str:
    return f"too old resource version: {version} (99999)"


def _forbidden(verb: str, resource: str, wanted: Operation) -> Status:
    name = f' "{wanted.pod}"' if wanted.pod else ""
    where = f'in API group "" in the namespace "{wanted.namespace}"'
    said = f'pods{name} is forbidden: User "{ACCOUNT}" cannot {verb} resource "{resource}" {where}'
    return Status(403, "Forbidden", said)
