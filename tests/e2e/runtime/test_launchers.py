"""
Launchers whose images hold nothing of mpirt reach their workers with what the init container brought.

Host names are asserted, not only exit codes: a launcher that silently runs everything on itself exits 0 too.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from mpirt import names
from testbed.ground import Namespace
from tests.e2e import files, horovod
from tests.e2e.rsh.launcher import lines, run
from tests.e2e.runtime import launcher
from tests.e2e.runtime.launcher import BIN, HOME, PATH, RSH
from tests.promises import promise

Workers = Callable[[int, str], list[str]]


@promise("The programs of the runtime folder run in any image, even one without a C library.", of="installation")
@pytest.mark.parametrize("image", ["busybox", "openmpi4", "openmpi5"])
@pytest.mark.sample(2)
def test_every_program_runs_in_any_image(namespace: Namespace, workers: Workers, image: str) -> None:
    [worker] = workers(1, "busybox")
    launcher.start(namespace, image, workers=[worker])

    assert lines(run(namespace, {}, RSH, worker, "hostname")) == ["worker-0"]
    assert lines(run(namespace, {}, f"{BIN}/ssh", "-o", "StrictHostKeyChecking=no", worker, "hostname")) == [
        worker
    ]
    for program in ("mpirt", "mpirt-discover"):
        [told] = lines(run(namespace, {}, f"{BIN}/{program}", "--version"))
        assert told.startswith(f"{program} ")


# Ways in which launchers and people come to start it.
CALLS = {
    "by PATH": ["mpirt-rsh"],
    "by a path of the folder": ["/bin/sh", "-c", f'cd {BIN} && exec ./mpirt-rsh "$@"', "sh"],
    "by a link to a link": [
        "/bin/sh", "-c", f'ln -s {RSH} /tmp/one && ln -s one /tmp/two && exec /tmp/two "$@"', "sh",
    ],
    "by kubexec.sh, mounted alone": [names.KUBEXEC_PATH],
}  # fmt: skip


@promise(
    "The programs of the runtime folder run wherever it is mounted and however they are called.", of="installation"
)
def test_a_program_finds_its_folder_however_it_is_called(namespace: Namespace, workers: Workers) -> None:
    [worker] = workers(1, "busybox")
    launcher.start(namespace, "busybox", workers=[worker])

    told = {way: lines(run(namespace, {"PATH": PATH}, *words, worker, "hostname")) for way, words in CALLS.items()}

    assert told == {way: ["worker-0"] for way in CALLS}


@promise("A kubexec.sh that is mounted alone finds its folder by MPIRT_RUNTIME.", of="installation")
def test_kubexec_finds_the_folder_where_a_variable_says_that_it_is(namespace: Namespace, workers: Workers) -> None:
    [worker] = workers(1, "busybox")
    launcher.start(namespace, "busybox", workers=[worker], place="/elsewhere")

    told = {names.RUNTIME_VARIABLE: "/elsewhere"}
    assert lines(run(namespace, told, names.KUBEXEC_PATH, worker, "hostname")) == ["worker-0"]
    untold = run(namespace, {}, names.KUBEXEC_PATH, worker, "hostname")
    assert (untold.returncode, untold.stdout) == (255, "")
    assert "kubexec.sh: its folder is neither around it nor in $MPIRT_RUNTIME nor in /opt/mpirt\n" in untold.stderr


# What users set for the programs of their image, and what would break or mislead a Python that believed it.
FOREIGN = {
    "LC_ALL": "de_DE.UTF-8",
    "LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu",
    "LD_PRELOAD": "/usr/lib/x86_64-linux-gnu/libm.so.6",
    "PYTHONHOME": "/nowhere",
    "PYTHONPATH": "/nowhere",
}


@promise(
    "PYTHONHOME, LD_LIBRARY_PATH and LD_PRELOAD do not disturb mpirt, and reach programs it starts.",
    of="installation",
)
@promise("A kubeconfig with a credential plugin is used, also in a pod.", of="mpirt-rsh")
def test_variables_for_the_images_programs_reach_them_and_not_ours(namespace: Namespace, workers: Workers) -> None:
    [worker] = workers(1, "busybox")
    # Its C library is newer than ours, which could not load what is preloaded of it.
    pod = launcher.start(namespace, "openmpi5", workers=[worker])
    files.put(namespace, pod, "/tmp/config", json.dumps(kubeconfig(namespace)).encode())
    files.put(namespace, pod, "/tmp/plugin", PLUGIN.encode(), mode="755")

    done = run(namespace, {**FOREIGN, "KUBECONFIG": "/tmp/config"}, RSH, worker, "hostname")

    assert lines(done) == ["worker-0"]
    seen = dict(line.partition("=")[::2] for line in lines(run(namespace, {}, "cat", "/tmp/seen")))
    assert {name: seen[name] for name in FOREIGN} == FOREIGN
    assert [name for name in seen if name.startswith("MPIRT")] == []


# A credential plugin, which is a program of the launcher's image.
PLUGIN = """#!/bin/sh
env > /tmp/seen
token=$(cat /var/run/secrets/kubernetes.io/serviceaccount/token)
echo '{"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential",
       "status": {"token": "'"$token"'"}}'
"""


def kubeconfig(namespace: Namespace) -> dict[str, object]:
    """The way to the API server that a pod has, with credentials from a program."""
    cluster = {
        "server": "https://kubernetes.default.svc",
        "certificate-authority": "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
    }
    plugin = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "/tmp/plugin"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "here", "cluster": cluster}],
        "users": [{"name": "me", "user": {"exec": plugin}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me", "namespace": namespace.name}}],
    }


@promise("With the runtime folder, a launcher image needs nothing but the MPI.", of="installation")
@pytest.mark.oldest
def test_mpirun_starts_a_rank_on_every_worker(namespace: Namespace, workers: Workers) -> None:
    hosts = workers(2, "openmpi4")
    launcher.start(namespace, "openmpi4", workers=hosts)
    variables = {"OMPI_MCA_plm_rsh_agent": "mpirt-rsh", "PATH": PATH, "HOME": HOME}

    done = run(namespace, variables, "mpirun", "--host", ",".join(hosts), "-n", "2", "hostname")

    assert len(namespace.nodes_of(hosts)) == 2
    assert lines(done) == hosts


# As a person does it in a launcher; the mounted kubexec.sh is one of ours, so horovodrun gets its path.
SHIMS = ("/bin/sh", "-c", 'eval "$(mpirt shims /tmp/shims)" && exec "$@"', "sh")


@promise("horovodrun starts ranks by kubexec.sh or by a shim named ssh, without a real ssh.", of="mpirt-rsh")
@promise("mpirt shims installs the agent where horovodrun looks for it.", of="mpirt")
@pytest.mark.parametrize(
    "way",
    [
        pytest.param(("env", f"OMPI_MCA_plm_rsh_agent={names.KUBEXEC_PATH}"), id="by the path of kubexec.sh"),
        pytest.param(("env", f"PATH={PATH}"), id="by a shim named ssh"),
        pytest.param(("env", f"PATH={PATH}", *SHIMS), id="by what `mpirt shims` prints"),
    ],
)
@pytest.mark.sample(1)
def test_horovodrun_reduces_over_two_workers(namespace: Namespace, workers: Workers, way: tuple[str, ...]) -> None:
    hosts = workers(2, "horovod")
    launcher.start(namespace, "horovod", workers=hosts)

    done = run(namespace, {"HOME": HOME}, *way, *horovod.COMMAND, horovod.ALLREDUCE)

    assert len(namespace.nodes_of(hosts)) == 2
    assert horovod.results(lines(done)) == horovod.REDUCED
