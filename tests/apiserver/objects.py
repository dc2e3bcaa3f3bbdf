"""
A loopback API server for objects of any kind, which can refuse, go away and stop in mid-answer.

Owns: HTTP. What TLS and credentials do wrong is tested with server.py. start() and stop() frame its life.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections import defaultdict, deque
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.apiserver import kubeconfig
from tests.apiserver.certificates import Authority
from tests.apiserver.faults import status_object
from tests.apiserver.storage import Body, Place, Storage, Trouble, apply_patch

_POLL = 0.2
_DISCOVERY = "apiresources"
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
READS = frozenset({"get", "list", "watch"})


class ObjectServer:
    """One server. Its attributes may be changed at any time."""

    def __init__(self, authority: Authority) -> None:
        self.storage = Storage()
        self.away = False
        """Cut every connection, and take none."""
        self.crds: dict[str, tuple[str, ...]] = {"kubeflow.org/v2beta1": ("mpijobs",)}
        """The plurals that CRDs serve, by group and version."""
        self.stuck = threading.Event()
        """A write was made and will never be answered."""
        self.requests: list[tuple[str, str]] = []
        """Verb and plural, in the order in which they came."""
        self.texts: dict[str, str] = {}
        """JSON that is written in the place of a string, such as what is too deep for a reader."""
        self._stuck_at: int | None = None
        self._writes = 0
        self._refusals: dict[tuple[str, str], deque[Body]] = defaultdict(deque)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._authority = authority
        self._server = _Server(self, authority.good)
        # How long it may take to notice that it is to stop.
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    # -- what a test says --------------------------------------------------------------------------------------

    def refuse(
        self,
        verb: str,
        plural: str,
        code: int,
        reason: str,
        message: str,
        *,
        times: int = 1,
        **details: Any,
    ) -> None:
        """Let the next requests of that kind be answered so, with such details."""
        with self._lock:
            no = {**status_object(code, reason, message), "details": details}
            self._refusals[verb, plural].extend([no] * times)

    def stick_at(self, write: int | None) -> None:
        """Carry out that many more writes, and never answer the last; None to answer all."""
        with self._lock:
            self._writes, self._stuck_at = 0, write
            self.stuck.clear()

    # -- what a test asks --------------------------------------------------------------------------------------

    def asked(self, *, but: frozenset[str] = frozenset()) -> list[tuple[str, str]]:
        """Verbs and plurals so far, without leases and without these verbs."""
        with self._lock:
            return [(verb, plural) for verb, plural in self.requests if plural != "leases" and verb not in but]

    def kubeconfig(self, folder: Path) -> Path:
        """Write a kubeconfig for this server."""
        url = f"https://127.0.0.1:{self._server.server_address[1]}"
        return kubeconfig.write(folder, url, {"token": "a-token"}, ca=self._authority.ca, namespace="default")

    def written(self, body: Body) -> bytes:
        text = json.dumps(body)
        for string, meant in self.texts.items():
            text = text.replace(json.dumps(string), meant)
        return text.encode()

    # -- its life ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    # -- one request -------------------------------------------------------------------------------------------

    def note(self, verb: str, plural: str) -> Body | None:
        """A request has come; the no that it was to get."""
        with self._lock:
            self.requests.append((verb, plural))
            waiting = self._refusals.get((verb, plural))
            return waiting.popleft() if waiting else None

    def sticks(self) -> bool:
        """Whether this write is the one that is never answered."""
        with self._lock:
            self._writes += 1
            if self._writes != self._stuck_at:
                return False
            self.stuck.set()
        self._stopping.wait(60)
        return True

    def is_over(self) -> bool:
        return self.away or self._stopping.is_set()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, objects: ObjectServer, tls: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects, self._tls = objects, tls

    def get_request(self) -> tuple[socket.socket, Any]:
        plain, address = super().get_request()
        # The thread of the connection shakes hands, when it reads.
        return self._tls.wrap_socket(plain, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, *_: Any) -> None:
        """A client that was killed is no error here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def handle_one_request(self) -> None:
        if self.server.objects.is_over():
            self.close_connection = True
            return
        super().handle_one_request()

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815  the library's names

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        place, below, query = _parsed(self.path)
        group_version = "/".join(urlsplit(self.path).path.split("/")[2:4])
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        verb = _verb(self.command, place, query)
        if self.server.objects.is_over():
            self._hang_up()
            return
        no = self.server.objects.note(verb, f"{place.plural}/{below}" if below else place.plural)
        if no is not None:
            self._say(no["code"], no)
        elif place.plural == _DISCOVERY:
            self._say(*_discovered(self.server.objects.crds, group_version))
        elif _is_unserved(self.server.objects.crds, group_version, place.plural):
            self._say(404, status_object(404, "NotFound", "the server could not find the requested resource"))
        elif verb == "watch":
            self._watch(place, int(query["resourceVersion"]))
        else:
            self._do(verb, place, query, body)

    def _do(self, verb: str, place: Place, query: dict[str, str], body: Any) -> None:
        try:
            code, said = _carry_out(self.server.objects.storage, verb, place, query, body)
        except Trouble as trouble:
            self._say(trouble.code, status_object(trouble.code, trouble.reason, str(trouble)))
            return
        is_write = verb not in READS and place.plural != "leases" and "dryRun" not in query
        if is_write and self.server.objects.sticks():
            self._hang_up()
        else:
            self._say(code, said)

    def _watch(self, place: Place, after: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while not self.server.objects.is_over():
            found = self.server.objects.storage.after(after, place, _POLL)
            if found is None:
                self._piece({"type": "ERROR", "object": status_object(410, "Expired", "too old")})
                self.wfile.write(b"0\r\n\r\n")
                return
            for version, kind, one in found:
                self._piece({"type": kind, "object": one})
                after = version
        self._hang_up()

    def _piece(self, event: Body) -> None:
        line = self.server.objects.written(event) + b"\n"
        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")

    def _say(self, code: int, body: Body) -> None:
        said = self.server.objects.written(body)
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        if seconds := body.get("details", {}).get("retryAfterSeconds"):
            self.send_header("Retry-After", str(seconds))
        self.end_headers()
        self.wfile.write(said)

    def _hang_up(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _parsed(target: str) -> tuple[Place, str, dict[str, str]]:
    """Where a request points, what below it, and its query."""
    parts = urlsplit(target)
    words = parts.path.strip("/").split("/")
    # An API group, or a version of it, by itself is what discovery asks for.
    words = (words[2:] if words[0] == "api" else words[3:]) or [_DISCOVERY]
    namespace, words = (words[1], words[2:]) if words[0] == "namespaces" else ("", words)
    name, below = (*words[1:], "", "")[:2]
    query = {key: values[0] for key, values in parse_qs(parts.query).items()}
    return Place(words[0], namespace, name), below, query


def _verb(method: str, place: Place, query: dict[str, str]) -> str:
    if method == "GET" and not place.name:
        return "watch" if "watch" in query else "list"
    return _VERBS[method]


def _discovered(crds: Mapping[str, tuple[str, ...]], group_version: str) -> tuple[int, Body]:
    """What is served of an API group, or of a version of it."""
    if group_version in crds:
        return 200, {"kind": "APIResourceList", "resources": [{"name": each} for each in crds[group_version]]}
    versions = [each.partition("/")[2] for each in crds if each.partition("/")[0] == group_version]
    if versions:
        return 200, {"kind": "APIGroup", "versions": [{"version": each} for each in versions]}
    return 404, status_object(404, "NotFound", "the server could not find the requested resource")


def _is_unserved(crds: Mapping[str, tuple[str, ...]], group_version: str, plural: str) -> bool:
    """Whether these are custom resources, which have a dot in their group and no k8s.io, without a CRD."""
    group = group_version.partition("/")[0]
    return "." in group and not group.endswith("k8s.io") and plural not in crds.get(group_version, ())


def _list(storage: Storage, place: Place) -> Body:
    version, items = storage.select(place)
    return {"metadata": {"resourceVersion": str(version)}, "items": items}


def _carry_out(storage: Storage, verb: str, place: Place, query: dict[str, str], body: Any) -> tuple[int, Body]:
    match verb:
        case "list":
            return 200, _list(storage, place)
        case "get":
            return 200, storage.get(place)
        case "create":
            there = Place(place.plural, place.namespace, body["metadata"]["name"])
            return 201, storage.create(there, body, dry_run="dryRun" in query)
        case "update":
            return 200, storage.replace(place, body)
        case "patch":
            return 200, storage.change(place, lambda found: apply_patch(found, body))
        case _:
            storage.delete(place, body.get("preconditions", {}).get("uid", ""))
            return 200, {"kind": "Status", "status": "Success"}
