"""kubectl as a value: one binary, one kubeconfig, one namespace."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testbed.kube.direct import direct
from testbed.kube.shell import run
from testbed.kube.wait import by_the_clock

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Kubectl:
    program: Path
    kubeconfig: Path
    namespace: str = "default"

    def inside(self, namespace: str) -> Kubectl:
        return replace(self, namespace=namespace)

    def __call__(
        self, *words: str, check: bool = True, stdin: str | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        # It is gone before it would have to collect anything, which takes a quarter of its processor time.
        quickly = {"GOGC": "off"}
        return run(*self.argv(*words), check=check, stdin=stdin, env=quickly, timeout=by_the_clock(timeout))

    def argv(self, *words: str) -> list[str]:
        """The whole command line, for a caller that runs it itself."""
        return [str(self.program), f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}", *words]

    def get(self, *words: str) -> Any:
        """An object, or a list's items, as parsed JSON."""
        straight = direct(self.kubeconfig)
        if straight is not None:
            return straight.get(self.namespace, words)
        found = json.loads(self("get", *words, "--output=json").stdout)
        return found["items"] if found["kind"].endswith("List") else found

    def apply(self, *manifests: Manifest) -> None:
        """Only what is there already is left to kubectl, which knows how to change it."""
        straight = direct(self.kubeconfig)
        there = [one for one in manifests if straight is None or not straight.create(self.namespace, one)]
        if not there:
            return
        everything = {"apiVersion": "v1", "kind": "List", "items": there}
        self("apply", "--filename=-", stdin=json.dumps(everything))

    def delete(self, kinds: str, name: str = "", *, grace: int | None = None) -> None:
        """Delete an object, or all of these kinds, without waiting until they are gone."""
        straight = direct(self.kubeconfig)
        if straight is not None:
            straight.delete(self.namespace, kinds, name, grace=grace)
            return
        seconds = [] if grace is None else [f"--grace-period={grace}"]
        self("delete", kinds, name or "--all", "--wait=false", *seconds)

    def execute(self, pod: str, *command: str, check: bool = True, timeout: float = 60) -> str:
        """What a command in a pod printed on stdout."""
        return self("exec", pod, "--", *command, check=check, timeout=timeout).stdout

    def answer_to(self, manifest: Manifest) -> str:
        """What the API server has against an object, which is not created; empty if nothing."""
        words = ("create", "--dry-run=server", "--filename=-")
        return self(*words, stdin=json.dumps(manifest), check=False).stderr

    def ready_nodes(self) -> set[str]:
        return {node["metadata"]["name"] for node in self.get("nodes") if is_ready(node)}

    def readiness_of_nodes(self) -> str:
        """What each node's kubelet says of it."""
        said = {node["metadata"]["name"]: _ready_condition(node).get("message") for node in self.get("nodes")}
        return ", ".join(f"{name} ({message})" for name, message in said.items()) or "no node"


def is_ready(item: Manifest) -> bool:
    """Whether a node or a pod has a true Ready condition."""
    return _ready_condition(item).get("status") == "True"


def _ready_condition(item: Manifest) -> Manifest:
    conditions = item.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == "Ready"), {})
