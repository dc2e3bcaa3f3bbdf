"""
The replies of mpirt-rsh that run no command: the help and the version.

Owns: the texts. Nothing is printed here.
"""

from __future__ import annotations

from dataclasses import dataclass

from mpirt.names import RSH
from mpirt.rsh.invocation.argv import Wants

HELP = """\
Usage: mpirt-rsh [options] HOST [options] COMMAND...

Runs COMMAND in a pod through the Kubernetes API, and ends as it ends. COMMAND is one shell string for the pod's
/bin/sh; words are joined by spaces, as ssh does it.

HOST is one of:
  POD, POD.SERVICE.NAMESPACE.svc...  a pod's name, or its host name; USER@HOST is understood
  JOB-INDEX, JOB-INDEX.SERVICE       a pod of an Indexed Job, a JobSet or a TrainJob
  10.0.0.7, fd00::7                  a pod's address

For launchers:
  OMPI_MCA_plm_rsh_agent=mpirt-rsh mpirun ...                     Open MPI 4
  PRTE_MCA_plm_ssh_agent=mpirt-rsh mpirun ...                     Open MPI 5
  HYDRA_LAUNCHER=rsh HYDRA_LAUNCHER_EXEC=mpirt-rsh mpiexec ...    MPICH, Intel MPI
  and as /etc/mpi/kubexec.sh or under the name ssh for horovodrun.

Examples:
  mpirt-rsh worker-0 hostname
  mpirt-rsh worker-0 'cd /data && ls | wc -l'
  mpirt-rsh --namespace ml --container main worker-0 nvidia-smi
  mpirt-rsh -o SetEnv=OMP_NUM_THREADS=4 worker-0 ./solve
  tar c . | mpirt-rsh worker-0 'tar x -C /work'
  rsync -e mpirt-rsh -a data/ worker-0:/data/
  sftp -S mpirt-rsh worker-0

Options:
  --namespace NAME       the pod's namespace; else that of HOST, else that of the kubeconfig or of this pod
  --container NAME       the container, where a pod has several
  --context NAME         a context of the kubeconfig
  -v                     log to stderr, with times
  --direct               as the first word: a switchboard of its own, as MPIRT_SWITCHBOARD=off has it
  -h, --help
  --version

Options of ssh; what has no meaning here is taken and ignored:
  -n, -o StdinNull=yes   no stdin
  -s HOST sftp           the pod's sftp-server
  -G HOST                print host, user and port
  -O check|stop|exit     there is never a shared connection
  -o ConnectTimeout=T    how long to wait for the pod and its container (60), such as 30, 10s or 1h30m
  -o ConnectionAttempts=N
  -o ServerAliveInterval=T, -o ServerAliveCountMax=N
                         how often to send keep-alives, and how many may stay unanswered
  -o SendEnv=PATTERN...  variables to pass to the command, such as LC_* or -LC_ALL
  -o SetEnv=NAME=VALUE...
  --                     no more options

Environment:
  KUBECONFIG             the cluster; without it ~/.kube/config, or the pod's own service account
  HTTPS_PROXY, NO_PROXY  the way to it, as for kubectl
  MPIRT_CONTEXT          as --context
  MPIRT_CONTAINER        as --container
  MPIRT_CONNECT_TIMEOUT  as ConnectTimeout
  MPIRT_SHELL            the shell in the pod that gets COMMAND, such as /bin/bash (/bin/sh)
  MPIRT_PROTOCOL         v4 or v5, the exec protocol that is tried first (v4)
  MPIRT_LEASE            how long a command runs on without a connection (180; 0: it ends with it)
  MPIRT_NODE_PATIENCE    how long its node may be unreachable while the API server answers (20)
  MPIRT_GRACE            seconds from TERM to KILL when the command is ended (3; 30 after the lease;
                         if the pod is deleted, its grace period less 3 s)
  MPIRT_FENCE            JOB or JOB:ATTEMPT; kills what earlier launchers of JOB left in the container
  MPIRT_SWITCHBOARD      off: a switchboard for each command, not one for all (on);
                         or the folder of its socket, such as /run/mpirt (/dev/shm, $TMPDIR or /tmp)
  MPIRT_LOG=debug        as -v

Exit code: the command's own, 128 and the number for a signal; from 240 on, see docs/exit-codes.md.
"""


@dataclass(frozen=True, slots=True)
class Reply:
    """What to print."""

    stdout: str = ""
    stderr: str = ""


def reply(asked: Wants, *, version: str) -> Reply:
    """Answer what was asked."""
    if asked is Wants.HELP:
        return Reply(stdout=HELP)
    told = f"{RSH} {version}\n"
    # Programs that ask as of ssh look at stderr, where ssh has it.
    return Reply(stdout=told) if asked is Wants.VERSION else Reply(stderr=told)


def version(package: str = "mpirt") -> str:
    """That of an installed package; empty if it is not installed."""
    # Brings email and zipfile: milliseconds of the first command's start, for what is hardly ever asked.
    from importlib import metadata  # noqa: PLC0415

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
