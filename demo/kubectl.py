"""kubectl, told which cluster by words of its own, whatever the current context becomes meanwhile."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, replace
from typing import Any

from testbed.kube.shell import run

_WITHIN = 60.0


@dataclass(frozen=True)
class Kubectl:
    """A program, the words that name the cluster, and a namespace."""

    program: str
    cluster: tuple[str, ...]
    namespace: str = "default"

    def inside(self, namespace: str) -> Kubectl:
        return replace(self, namespace=namespace)

    def argv(self, *words: str) -> list[str]:
        """The whole command line, for a caller that runs it itself."""
        return [self.program, *self.cluster, f"--namespace={self.namespace}", *words]

    def __call__(
        self, *words: str, check: bool = True, stdin: str | None = None, within: float = _WITHIN
    ) -> subprocess.CompletedProcess[str]:
        return run(*self.argv(*words), check=check, stdin=stdin, timeout=within)

    def get(self, *words: str) -> Any:
        """An object, or a list's items, as parsed JSON."""
        found = json.loads(self("get", *words, "--output=json").stdout)
        return found["items"] if found["kind"].endswith("List") else found
