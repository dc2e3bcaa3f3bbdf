"""
How programs that are measured reach the cluster: as in a launcher pod, or by a kubeconfig as on a desk.

Owns: what they find in their environment and in the service account's folder, for both sides the same. In a
launcher pod nobody parses a kubeconfig, and that is worth megabytes: so the access of a pod is what counts.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from benchmarks import linux
from benchmarks.measure import Unmeasured
from testbed.ground import Namespace
from testbed.kube.shell import output, run
from tests.e2e.rsh.launcher import rules
from tests.support.kubeconfigs import kubeconfig

# Where the kubelet mounts it in every pod.
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_INSTEAD = "measure with: --access kubeconfig"


class Access(StrEnum):
    """The ways."""

    POD = "pod"
    KUBECONFIG = "kubeconfig"


@dataclass(frozen=True, slots=True)
class Server:
    """What the kubelet tells a pod of the API server."""

    host: str
    port: int
    authority: bytes

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self:
        """From a kubeconfig with one cluster in it, flattened."""
        cluster = config["clusters"][0]["cluster"]
        url = urlsplit(cluster["server"])
        authority = cluster.get("certificate-authority-data")
        if url.scheme != "https" or not url.hostname or url.path.strip("/") or not authority:
            raise Unmeasured(f"no pod reaches its API server as {cluster['server']} is reached here; {_INSTEAD}")
        return cls(url.hostname, url.port or 443, base64.b64decode(authority))


def versions(program: Path, kubectl: Path, namespace: Namespace) -> str:
    """A program of ours and a kubectl that compete, and the cluster: one line."""
    told = json.loads(replace(namespace.kubectl, program=kubectl)("version", "--output=json").stdout)
    client, server = told["clientVersion"]["gitVersion"], told["serverVersion"]["gitVersion"]
    return f"{output(program, '--version')} against kubectl {client}, on Kubernetes {server}"


@contextmanager
def environment(access: Access, namespace: Namespace, worker: str) -> Iterator[dict[str, str]]:
    """The environment of a program that runs commands in a worker, as long as the block lasts."""
    config = kubeconfig(namespace)
    if access is Access.KUBECONFIG:
        yield {**plain(os.environ), "KUBECONFIG": str(config)}
        return
    server = Server.of(json.loads(config.read_text()))
    folder = _service_account(namespace, worker, server)
    home = namespace.folder / "home"
    home.mkdir()
    with _mounted(folder, _SERVICE_ACCOUNT):
        yield in_pod(os.environ, server, home=home)


def in_pod(present: Mapping[str, str], server: Server, *, home: Path) -> dict[str, str]:
    """The environment in a pod of the API server's cluster; no kubeconfig is in the way in this home."""
    service = {"KUBERNETES_SERVICE_HOST": server.host, "KUBERNETES_SERVICE_PORT": str(server.port)}
    return {**plain(present), **service, "HOME": str(home)}


def plain(present: Mapping[str, str]) -> dict[str, str]:
    """
    What stays of the environment: nothing that leads to a cluster, and none of Python's own variables.

    With PYTHONDONTWRITEBYTECODE, say, a Python program would compile itself in every run, which no installed one
    does.
    """
    return {name: value for name, value in present.items() if not name.startswith(("KUBE", "MPIRT_", "PYTHON"))}


def _service_account(namespace: Namespace, worker: str, server: Server) -> Path:
    """A launcher's account, and the folder that the kubelet would make of it."""
    account = namespace.account("launcher", rules=rules([worker]))
    path = f"/api/v1/namespaces/{namespace.name}/serviceaccounts/{account}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
    told = namespace.kubectl("create", f"--raw={path}", "--filename=-", stdin=json.dumps(request)).stdout
    folder = namespace.folder / "serviceaccount"
    folder.mkdir(mode=0o700)
    (folder / "token").write_text(json.loads(told)["status"]["token"])
    (folder / "ca.crt").write_bytes(server.authority)
    (folder / "namespace").write_text(namespace.name)
    return folder


@contextmanager
def _mounted(folder: Path, place: Path) -> Iterator[None]:
    """Show a folder at another place, to us and to what we start only."""
    try:
        linux.unshare_mounts()
    except PermissionError as error:
        raise Unmeasured(f"only root can be like a pod here; {_INSTEAD}") from error
    # Nothing of ours gets out, and what others unmount doesn't live on with us.
    run("mount", "--make-rslave", "/")
    made = not place.exists()
    place.mkdir(parents=True, exist_ok=True)
    run("mount", "--bind", folder, place)
    try:
        yield
    finally:
        run("umount", place)
        if made:
            os.removedirs(place)
