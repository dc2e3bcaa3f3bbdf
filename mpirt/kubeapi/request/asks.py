"""
What can be asked of an API server: the path and query, and the permission that it takes.

Owns: targets, and the words for what was asked in messages. No I/O.
"""

from __future__ import annotations

from collections.abc import Sequence

from mpirt.kubeapi.request.http1 import escaped, query
from mpirt.values import Value

# A page of 250 pods is one to three MB of JSON; kubectl takes 500, at twice the memory.
PAGE = 250


class Ask(Value):
    """One question, and what a Role must hold for it to be answered."""

    doing: str
    """What the program was about to do, to follow "may not": `exec into pod "w-0" in namespace "ml"`."""
    verbs: tuple[str, ...]
    resource: str
    namespace: str
    name: str
    target: str


def get_pod(namespace: str, name: str) -> Ask:
    """One pod."""
    return Ask(
        doing=f'read pod "{name}" in namespace "{namespace}"',
        verbs=("get",),
        resource="pods",
        namespace=namespace,
        name=name,
        target=f"{_pods(namespace)}/{escaped(name)}",
    )


def list_pods(
    namespace: str, *, labels: str = "", fields: str = "", name: str = "", limit: int = 0, after: str = ""
) -> Ask:
    """Pods by label or field, or one by its name; `limit` of them at most, going on `after` a continue token."""
    wanted = [
        ("labelSelector", labels),
        ("fieldSelector", f"metadata.name={name}" if name else fields),
        ("limit", str(limit) if limit else ""),
        ("continue", after),
    ]
    return Ask(
        doing=f'list pods in namespace "{namespace}"',
        verbs=("list",),
        resource="pods",
        namespace=namespace,
        name=name,
        target=_with_query(_pods(namespace), wanted),
    )


def watch_pods(namespace: str, *, labels: str = "", name: str = "", since: str, seconds: int) -> Ask:
    """What happens to the pods with the labels, or to one, from a resource version on, for so many seconds."""
    wanted = [
        ("watch", "true"),
        ("labelSelector", labels),
        ("fieldSelector", f"metadata.name={name}" if name else ""),
        ("resourceVersion", since),
        ("timeoutSeconds", str(seconds)),
        ("allowWatchBookmarks", "true"),
    ]
    return Ask(
        doing=f'watch pod "{name}" in namespace "{namespace}"'
        if name
        else f'watch pods in namespace "{namespace}"',
        verbs=("watch",),
        resource="pods",
        namespace=namespace,
        name=name,
        target=_with_query(_pods(namespace), wanted),
    )


def exec_in_pod(namespace: str, name: str, *, container: str, command: Sequence[str]) -> Ask:
    """
    A command in a container, with stdin, stdout and stderr and no terminal.

    The command stands in the URL and so in audit logs: a constant bootstrap belongs here, nothing else.
    """
    wanted = [
        ("container", container),
        ("stdin", "true"),
        ("stdout", "true"),
        ("stderr", "true"),
        *(("command", word) for word in command),
    ]
    return Ask(
        doing=f'exec into pod "{name}" in namespace "{namespace}"',
        # WebSockets start with a GET, so `get`; Kubernetes 1.35 and later ask for `create` too.
        verbs=("get", "create"),
        resource="pods/exec",
        namespace=namespace,
        name=name,
        target=_with_query(f"{_pods(namespace)}/{escaped(name)}/exec", wanted),
    )


def _pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{escaped(namespace)}/pods"


def _with_query(path: str, wanted: Sequence[tuple[str, str]]) -> str:
    given = query((name, value) for name, value in wanted if value)
    return f"{path}?{given}" if given else path
