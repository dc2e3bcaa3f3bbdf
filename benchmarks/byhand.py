"""
The workers of elastic Horovod, looked after as et-operator does it, by hand.

Owns: bare pods under fresh numbers, the list of hosts in the launcher, and letting a worker go: its name leaves
the list, the launcher's processes are searched every five seconds for a call that names it, and once there is none
its pod is deleted without grace. Neither nodes nor deletion times are looked at: a pod that is about to go counts
until it is gone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from testbed.ground import Namespace
from testbed.kube.kubectl import Kubectl, Manifest
from tests.e2e.elastic import example
from tests.e2e.elastic.training import Training

LABELS = "app=worker"
# What its launchers may exec in.
_ALL = "all-workers"

_OF_ONE_NODE = ("nodeName", "hostname", "topologySpreadConstraints")

_LOOKS_EVERY = 5.0
# et-operator watches pods.
_SEES_EVERY = 0.5


@dataclass
class Workers:
    """Those of one training."""

    run: Training
    names: Sequence[str]
    """The hosts in the launcher's list."""
    _made: int = field(init=False)

    def __post_init__(self) -> None:
        self._made = len(self.names)

    def remove(self, worker: str) -> None:
        """Let one go when no process of the launcher names it."""
        self._tell([name for name in self.names if name != worker])
        while self._is_called(worker):
            time.sleep(_LOOKS_EVERY)
        self._kubectl("delete", "pod", worker, "--grace-period=0", "--force")

    @contextmanager
    def healed(self) -> Iterator[None]:
        """Replace what vanishes meanwhile, and list what runs."""
        is_over = threading.Event()
        healer = threading.Thread(target=self._heal, args=(is_over,))
        healer.start()
        try:
            yield
        finally:
            is_over.set()
            healer.join()

    def _heal(self, is_over: threading.Event) -> None:
        model, count = self._pods()[0], len(self.names)
        while not is_over.wait(_SEES_EVERY):
            pods = self._pods()
            for _ in range(count - len(pods)):
                self._kubectl.apply(_copy(model, f"worker-{self._made}"))
                self._made += 1
            running = sorted(pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Running")
            if running != self.names:
                self._tell(running)

    def _tell(self, hosts: Sequence[str]) -> None:
        example.list_hosts(self.run, hosts)
        self.names = hosts

    def _pods(self) -> list[Manifest]:
        return list(self._kubectl.get("pods", f"--selector={LABELS}"))

    def _is_called(self, worker: str) -> bool:
        """Whether any process of the launcher names the worker in a call of kubectl."""
        words = "for each in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$each; echo; done 2>/dev/null"
        said = self._kubectl("exec", self.run.pod, "--", "/bin/sh", "-c", words).stdout
        return any(f"exec {worker} " in line for line in said.splitlines())

    @property
    def _kubectl(self) -> Kubectl:
        return self.run.namespace.kubectl


@contextmanager
def training(namespace: Namespace, count: int) -> Iterator[Workers]:
    """The training of the example, by kubectl exec, once it trains with so many workers."""
    with example.started(namespace, workers=count, by_kubectl=True) as run:
        namespace.kubectl("delete", "statefulset", "worker", "--cascade=orphan")
        namespace.kubectl("create", "role", _ALL, "--verb=get,create", "--resource=pods/exec")
        account = f"--serviceaccount={namespace.name}:launcher"
        namespace.kubectl("create", "rolebinding", _ALL, f"--role={_ALL}", account)
        yield Workers(run, [f"worker-{number}" for number in range(count)])


def _copy(model: Manifest, name: str) -> Manifest:
    """Another pod like this one, for any node."""
    spec = {key: value for key, value in model["spec"].items() if key not in _OF_ONE_NODE}
    metadata = {"name": name, "labels": {"app": "worker"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**spec, "hostname": name}}
