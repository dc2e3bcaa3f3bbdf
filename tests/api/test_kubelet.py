"""Commands in pods that KWOK plays, by the real API server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import manifests
from testbed.ground import Ground, Namespace
from testbed.plane import kubelet, nodes
from testbed.plane.plane import Plane
from tests.support.kubeconfigs import kubeconfig

NODE = "node-with-a-kubelet"


@pytest.fixture
def answering(plane: Plane, cluster: Ground, tmp_path: Path) -> Iterator[None]:
    """A kubelet, and its node."""
    where = kubelet.somewhere(plane.site)
    nodes.add(cluster.kubectl, [NODE], alone=True, kubelet=where)
    with kubelet.running(where, plane.site, tmp_path):
        yield
    nodes.remove(cluster.kubectl, NODE)


@pytest.mark.usefixtures("answering")
def test_a_command_runs_in_a_folder_of_its_pod_and_ends_with_its_code(
    namespace: Namespace, tmp_path: Path
) -> None:
    namespace.kubectl.apply(manifests.pod("w", image="none", **manifests.on(NODE), **nodes.tolerating(NODE)))
    namespace.wait_until_ready("w")
    env = {**os.environ, "KUBECONFIG": str(kubeconfig(namespace)), "MPIRT_SWITCHBOARD": "off"}
    command = 'read -r word; echo "$word"; echo "$TMPDIR" >&2; exit 7'

    done = subprocess.run(
        [Path(sys.executable).with_name("mpirt-rsh"), "w", command],
        env=env,
        input="hello\n",
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (7, "hello\n", f"{tmp_path}/w\n")
