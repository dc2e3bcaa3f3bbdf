"""
Launchers whose images hold nothing of mpirt reach their workers with what the init container brought.

Host names are asserted, not only exit codes: a launcher that silently runs everything on itself exits 0 too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from mpirt import names
from testbed.ground import Namespace
from testbed.kube.wait import until
from tests.e2e import files, horovod
from tests.e2e.rsh.launcher import HYDRA, OPEN_MPI_4, OPEN_MPI_5, Mpi, lines, run
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


# It ends 15 s after its last agent.
_GONE_WITHIN = 45

_BOARD = "mpirt-switchboard"
# Processes by their words, but for the shell that looks; and files where a switchboard may have its own.
_LOOK = """
for each in /proc/[0-9]*; do
    [ "${each#/proc/}" = $$ ] || echo "process $(tr '\\0' ' ' <"$each/cmdline" 2>/dev/null)"
done 2>/dev/null
for each in /dev/shm/* /dev/shm/mpirt-*/* /tmp/* /tmp/.[!.]*; do [ ! -e "$each" ] || echo "file $each"; done
"""


@promise("One switchboard serves all commands of a launcher, and ends after the last one.", of="mpirt-rsh")
@pytest.mark.parametrize(
    ("mpi", "words"),
    [
        (OPEN_MPI_4, ("mpirun", "--host", "worker-0,worker-1")),
        (OPEN_MPI_5, ("mpirun", "--host", "worker-0,worker-1")),
        (HYDRA, ("mpiexec.hydra", "-hosts", "worker-0,worker-1")),
    ],
    ids=["Open MPI 4", "Open MPI 5", "Hydra"],
)
@pytest.mark.sample(1)
def test_a_switchboard_serves_a_job_and_leaves_only_its_lock_and_an_empty_log(
    namespace: Namespace, mpi: Mpi, words: tuple[str, ...]
) -> None:
    # Open MPI 5 takes no word of the launcher's that its daemons may be root.
    same_user = {"runAsUser": launcher.USER, "runAsGroup": launcher.USER}
    hosts = namespace.workers(2, mpi.image, securityContext=same_user)
    pod = launcher.start(namespace, mpi.image, workers=hosts)
    before = seen(namespace, pod)

    done = run(namespace, variables(mpi), *words, "-n", "2", "hostname")
    after = seen(namespace, pod)

    assert lines(done) == hosts
    [board] = [line for line in after if line.startswith("process") and _BOARD in line]
    [folder] = [line.removeprefix("file ") for line in after if line.startswith(f"file /dev/shm/{_BOARD}-")][:1]
    assert f"file {folder}/socket" in after
    until(lambda: board not in seen(namespace, pod), within=_GONE_WITHIN, what="the end of the switchboard")
    left = [line for line in seen(namespace, pod) if line not in before]
    assert left == [f"file {folder}", f"file {folder}/lock", f"file {folder}/log"]
    assert namespace.kubectl.execute(pod, "cat", f"{folder}/log") == ""


def variables(mpi: Mpi) -> Mapping[str, str]:
    """Without a file of hosts, which are words here."""
    own = {name: text for name, text in mpi.variables.items() if "host" not in name.lower()}
    return {**own, "PATH": PATH, "HOME": HOME}


def seen(namespace: Namespace, pod: str) -> list[str]:
    return namespace.kubectl.execute(pod, "/bin/sh", "-c", _LOOK).splitlines()
