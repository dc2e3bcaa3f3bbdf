"""
The switchboard of a launcher with the runtime folder: in the default place, one, and gone when nobody needs it.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from testbed.ground import Namespace
from testbed.kube.wait import until
from tests.e2e.rsh.launcher import lines, run
from tests.e2e.rsh.mpis import HYDRA, OPEN_MPI_4, OPEN_MPI_5, Mpi
from tests.e2e.runtime import launcher
from tests.e2e.runtime.launcher import HOME, PATH
from tests.promises import promise

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
