"""
What is told instead of running a command: the help, the version, and what programs ask ssh for.

Owns: the texts. Nothing is printed here. Imported only where one of them is asked for.

Git and editors probe with `ssh -G`. Ansible's reset asks `-O check` whether there is a connection to stop, and
stops it only if there is: as with ssh, there is none.
"""

from __future__ import annotations

from mpirt.errors import ExitCode
from mpirt.names import RSH
from mpirt.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpirt.rsh.invocation.argv import Wants

# What ssh itself fails with.
_SSH_FAILED = 255

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
  --direct               as the first word: run in a process of its own, as MPIRT_SWITCHBOARD=off does
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
  MPIRT_SWITCHBOARD      off: one process per command, not one for all (on);
                         or the folder of its socket, such as /run/mpirt (/dev/shm, $TMPDIR or /tmp)
  MPIRT_LOG=debug        as -v

Exit code: the command's own, 128 and the number for a signal; from 240 on, see docs/exit-codes.md.
"""


class Reply(Value):
    """What to print, and the code to end with."""

    code: int
    stdout: str = ""
    stderr: str = ""


def reply(asked: Wants, *, version: str, user: str) -> Reply:
    """Answer what was asked; `user` is who asks."""
    match asked.what:
        case "help":
            return Reply(ExitCode.OK, stdout=HELP)
        case "version":
            return Reply(ExitCode.OK, stdout=f"{RSH} {version}\n")
        case "V":
            # Who asks so looks at stderr, where ssh has it.
            return Reply(ExitCode.OK, stderr=f"{RSH} {version}\n")
        case "G":
            lines = f"host {asked.host}\nuser {asked.user or user}\nhostname {asked.host}\nport {asked.port}\n"
            return Reply(ExitCode.OK, stdout=lines)
        case "check":
            none = 'No ControlPath specified for "-O" command'
            said = f"Control socket connect({asked.path}): No such file or directory" if asked.path else none
            return Reply(_SSH_FAILED, stderr=f"{RSH}: {said}\n")
    return Reply(ExitCode.OK)
