"""mpirt-discover, started by the test itself against a namespace of the cluster, and workers for it to find."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed import manifests
from testbed.ground import Namespace
from tests.support.kubeconfigs import kubeconfig

DISCOVER = Path(sys.executable).with_name("mpirt-discover")
# What docs/operations say that discovery needs, and all that it needs.
LEAST = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
# A call that isn't the first says at once what is known.
LATER: Mapping[str, str] = {"MPIRT_DISCOVER_FIRST_TIMEOUT": "0"}


@dataclass(frozen=True)
class Ended:
    """How it ended."""

    code: int
    output: str
    errors: str

    @property
    def hosts(self) -> list[str]:
        """The lines of the list; there is one only if the code is 0."""
        assert self.code == 0, self
        return self.output.splitlines()


def begin(
    namespace: Namespace, *words: str, account: str = "", env: Mapping[str, str] = LATER
) -> subprocess.Popen[str]:
    """Start it, as the administrator or as a service account."""
    variables = {**os.environ, **env, "KUBECONFIG": str(kubeconfig(namespace, account=account))}
    return subprocess.Popen(
        [str(DISCOVER), *words],
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str]) -> Ended:
    """Wait for its end."""
    with process:
        output, errors = process.communicate(timeout=180)
    return Ended(process.returncode, output, errors)


def run(namespace: Namespace, *words: str, account: str = "", env: Mapping[str, str] = LATER) -> Ended:
    """Run it to its end."""
    return end(begin(namespace, *words, account=account, env=env))


def workers(name: str, *, image: str, replicas: int, labels: Mapping[str, str], **pod: Any) -> manifests.Manifest:
    """A StatefulSet whose pods have more labels than its own."""
    made = manifests.workers(name, replicas=replicas, image=image, **pod)
    made["spec"]["template"]["metadata"]["labels"] |= labels
    return made
