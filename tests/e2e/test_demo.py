"""`make demo` says which rank of an MPI job ran where, and leaves what it found."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from demo import program
from testbed.ground import Ground
from testbed.kube import paths
from tests.promises import promise

_PI = re.compile(r"pi is about 3\.1415926535")
_ROW = re.compile(r"^(\d)  +(pi-worker-\d)  +(node-\d)$", re.MULTILINE)
_SECONDS = re.compile(r"^3 ranks on 2 nodes, in \d+ s from the start\.$", re.MULTILINE)


@pytest.fixture
def ready(own_cluster: Ground) -> Ground:
    """The cluster, with the images that the demo would make first."""
    own_cluster.image("controller")
    own_cluster.image("runtime")
    program.load()
    return own_cluster


def make_demo(*variables: str, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        ["make", "--no-print-directory", "demo", *variables],
        check=False,
        cwd=paths.PROJECT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )
    print(done.stdout, done.stderr)
    return done


def namespace_in(text: str) -> str:
    [name] = set(re.findall(r"mpirt-demo-[0-9a-f]+", text))
    return str(name)


@promise("make demo shows on which pod and node each rank ran, and leaves nothing.", of="installation")
def test_the_demo_says_on_which_pod_and_node_each_rank_ran_and_leaves_nothing(ready: Ground) -> None:
    done = make_demo()

    rows = _ROW.findall(done.stdout)
    assert (done.returncode, [row[:2] for row in rows]) == (0, [(f"{n}", f"pi-worker-{n}") for n in range(3)])
    assert {row[2] for row in rows} == {"node-1", "node-2"}
    assert _PI.search(done.stdout)
    assert re.search(r"^pi +Succeeded +3 +3 ", done.stdout, re.MULTILINE), "what kubectl shows of the job"
    assert len(_SECONDS.findall(done.stdout)) == 1
    namespace = ready.kubectl(
        "get", "namespace", namespace_in(done.stdout + done.stderr), "--output=json", check=False
    )
    assert namespace.returncode != 0 or '"Terminating"' in namespace.stdout


@promise("make demo runs on the cluster of the current context, and KEEP=yes keeps the job.", of="installation")
def test_on_the_current_context_it_uses_the_images_that_it_is_told_and_leaves_what_is_to_be_kept(
    ready: Ground, tmp_path: Path
) -> None:
    (tmp_path / "kubectl").symlink_to(ready.kubectl.program)

    done = make_demo(
        "CLUSTER=current",
        "KEEP=yes",
        *(f"{name.upper()}_IMAGE={ready.image_prefix}/{name}:dev" for name in ("controller", "runtime", "pi")),
        KUBECONFIG=str(paths.KUBECONFIG),
        PATH=f"{tmp_path}:{os.environ['PATH']}",
    )

    name = namespace_in(done.stdout + done.stderr)
    inside = ready.kubectl.inside(name)
    job = inside.get("mpijob", "pi")
    workers = inside.get("pods", "--selector=training.kubeflow.org/job-role=worker")
    ready.kubectl("delete", "namespace", name, "--wait=false")
    assert (done.returncode, len(_ROW.findall(done.stdout))) == (0, 3)
    assert re.search(
        rf"^To remove it: kubectl --context=\S+ .* delete namespace {name}$", done.stdout, re.MULTILINE
    )
    assert [each["type"] for each in job["status"]["conditions"] if each["status"] == "True"] == [
        "Created",
        "Succeeded",
    ]
    assert len(workers) == 3
