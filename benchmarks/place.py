"""
Where a benchmark takes place, and how programs that are measured reach the cluster there.

Owns: namespaces on the test cluster, and what a program finds in its environment and in the service account's
folder, for both sides the same. In a launcher pod no kubeconfig is parsed: so the access of a pod is what counts.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from benchmarks.frame import Unmeasured
from testbed import ground
from testbed.ground import Ground, Namespace
from testbed.kube.shell import run
from tests.e2e.rsh.launcher import rules
from tests.support.kubeconfigs import kubeconfig

# Where the kubelet mounts it in every pod.
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# From <linux/sched.h>.
_CLONE_NEWNS = 0x00020000
_INSTEAD = "measure with: --access kubeconfig"

ACCESS = click.option(
    "--access",
    type=click.Choice(["pod", "kubeconfig"]),
    default="pod",
    show_default=True,
    help="How programs reach the cluster: as in a launcher pod (root), or by a kubeconfig.",
)


@contextmanager
def fresh_namespace() -> Iterator[Namespace]:
    """A namespace on the cluster of MPIRT_TEST_KUBECONFIG, else on our own, which is started if it must be."""
    with fresh_namespaces(1) as [namespace]:
        yield namespace


@contextmanager
def fresh_namespaces(count: int) -> Iterator[list[Namespace]]:
    """So many of them, each with a folder of its own."""
    with ExitStack() as stack:
        cluster, folder = stack.enter_context(fresh_ground())
        folders = [folder / str(number) for number in range(count)]
        for each in folders:
            each.mkdir()
        yield [stack.enter_context(ground.passing_namespace(cluster, each)) for each in folders]


@contextmanager
def fresh_ground() -> Iterator[tuple[Ground, Path]]:
    """The cluster and a folder."""
    with tempfile.TemporaryDirectory(prefix="mpirt-benchmark-") as folder:
        yield ground.find(), Path(folder)


@contextmanager
def environment(access: str, namespace: Namespace, worker: str) -> Iterator[dict[str, str]]:
    """The environment of a program that runs commands in a worker, as long as the block lasts."""
    config = kubeconfig(namespace)
    if access == "kubeconfig":
        yield {**plain_environment(), "KUBECONFIG": str(config)}
        return
    cluster = json.loads(config.read_text())["clusters"][0]["cluster"]
    url, authority = urlsplit(cluster["server"]), cluster.get("certificate-authority-data")
    if url.scheme != "https" or not url.hostname or url.path.strip("/") or not authority:
        raise Unmeasured(f"a pod can't reach its API server as {cluster['server']} is reached here; {_INSTEAD}")
    home = namespace.folder / "home"
    home.mkdir()
    service = {"KUBERNETES_SERVICE_HOST": url.hostname, "KUBERNETES_SERVICE_PORT": str(url.port or 443)}
    with _mounted(_service_account(namespace, worker, base64.b64decode(authority))):
        yield {**plain_environment(), **service, "HOME": str(home)}


def plain_environment() -> dict[str, str]:
    """
    What stays of the environment: nothing that leads to a cluster, and none of Python's own variables.

    With PYTHONDONTWRITEBYTECODE, for example, a Python program would compile itself in every run, which no
    installed one does.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith(("KUBE", "MPIRT_", "PYTHON"))}


def _service_account(namespace: Namespace, worker: str, authority: bytes) -> Path:
    """A launcher's account, and the folder that the kubelet would make of it."""
    account = namespace.account("launcher", rules=rules([worker]))
    path = f"/api/v1/namespaces/{namespace.name}/serviceaccounts/{account}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
    answer: dict[str, Any] = json.loads(
        namespace.kubectl("create", f"--raw={path}", "--filename=-", stdin=json.dumps(request)).stdout
    )
    folder = namespace.folder / "serviceaccount"
    folder.mkdir(mode=0o700)
    (folder / "token").write_text(answer["status"]["token"])
    (folder / "ca.crt").write_bytes(authority)
    (folder / "namespace").write_text(namespace.name)
    return folder


@contextmanager
def _mounted(folder: Path) -> Iterator[None]:
    """Show a folder as a pod's service account, to this process and to what it starts only."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS) != 0:
        raise Unmeasured(f"a pod can't be imitated: {os.strerror(ctypes.get_errno())}; {_INSTEAD}")
    # What is mounted here stays here, and what others unmount does not live on here.
    run("mount", "--make-rslave", "/")
    made = not _SERVICE_ACCOUNT.exists()
    _SERVICE_ACCOUNT.mkdir(parents=True, exist_ok=True)
    run("mount", "--bind", folder, _SERVICE_ACCOUNT)
    try:
        yield
    finally:
        run("umount", _SERVICE_ACCOUNT)
        if made:
            os.removedirs(_SERVICE_ACCOUNT)
