"""
Every name that two programs, or two objects in a cluster, must agree on.

Owns: constants and the functions that compose them. A name comes here the day a second place needs it. Must
not import anything: the fastest program reads this file on every start.
"""

from __future__ import annotations

# The console scripts: what people type, what launchers are told to start, and how errors sign themselves.
MPIRT = "mpirt"
RSH = "mpirt-rsh"
DISCOVER = "mpirt-discover"
CONTROLLER = "mpirt-controller"
# The first process of a launcher.
INIT = "mpirt-init"

# The one agent besides ssh that horovodrun knows, by exactly this path.
KUBEXEC_PATH = "/etc/mpi/kubexec.sh"

# What pods of a job carry, and what may be written on them. Everything of ours in a cluster has this prefix.
PREFIX = "mpirt.dev"
JOB_LABEL = f"{PREFIX}/job"
# Of what kind the job object is that kubeflow's label below names; where it is missing, an MPIJob.
JOB_KIND_LABEL = f"{PREFIX}/job-kind"
ROLE_LABEL = f"{PREFIX}/role"
WORKER = "worker"
LAUNCHER = "launcher"
SLOTS_ANNOTATION = f"{PREFIX}/slots"
DRAINING_ANNOTATION = f"{PREFIX}/draining"
# Since when, if the controller has written it.
DRAINING_SINCE_ANNOTATION = f"{PREFIX}/draining-since"
# On a ScaleIn, with "true": its workers go at its time limit even if they are in use.
FORCE_ANNOTATION = f"{PREFIX}/force"
# On a job that is over: a value that was not there before runs it again; and so does, with "true", the deletion of
# its launcher Job.
RERUN_ANNOTATION = f"{PREFIX}/rerun"
RERUN_WHEN_DELETED_ANNOTATION = f"{PREFIX}/rerun-when-deleted"
# On a job, with "true": its launcher copes with the loss of workers, and its exit code is the truth.
TOLERATES_ANNOTATION = f"{PREFIX}/tolerates-lost-workers"

# The same for pods that kubeflow's operators make: mpi-operator v2beta1 and training-operator (to which a role is
# a replica-type), and before them mpi-operator v1.
KUBEFLOW_JOB_LABEL = "training.kubeflow.org/job-name"
KUBEFLOW_ROLE_LABEL = "training.kubeflow.org/job-role"
KUBEFLOW_REPLICA_LABEL = "training.kubeflow.org/replica-type"
KUBEFLOW_V1_JOB_LABEL = "mpi-job-name"
KUBEFLOW_V1_ROLE_LABEL = "mpi-job-role"
# A pod's rank among those of its job: Kueue places ranks by it.
KUBEFLOW_INDEX_LABEL = "training.kubeflow.org/replica-index"
# And on pods of mpi-operator v1, whoever their job was.
KUBEFLOW_V1_GROUP_LABEL = "group-name"
KUBEFLOW_GROUP = "kubeflow.org"

# The same for et-operator's TrainingJobs, by which Arena finds their pods.
TRAINING_GROUP = "kai.alibabacloud.com"
TRAINING_JOB_LABEL = "training-job-name"
TRAINING_ROLE_LABEL = "training-job-role"
TRAINING_INDEX_LABEL = "replica-index"
# On the pods that a ScaleOut added: its name.
SCALE_OUT_LABEL = "scaleout-name"

# Says "launcher" in the pods of mpi-operator v2beta1, whose host name is then the job's with "-launcher" after it.
KUBEFLOW_ROLE_VARIABLE = "K_MPI_JOB_ROLE"

# Kubernetes' own.
DEFAULT_CONTAINER_ANNOTATION = "kubectl.kubernetes.io/default-container"
POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
REVISION_LABEL = "controller-revision-hash"

# `debug` has the fast programs say on stderr what they do.
LOG_VARIABLE = "MPIRT_LOG"

# For how many seconds a command waits until its pod is Ready.
WAIT_VARIABLE = "MPIRT_WAIT"

# Which container of a worker runs the commands.
CONTAINER_VARIABLE = "MPIRT_CONTAINER"

# A rank's share of its container's CPUs, which images/common/process.c makes OMP_NUM_THREADS, unless that is set.
THREADS_VARIABLE = "MPIRT_THREADS"

# The shell in the pod that gets the command, by its path.
SHELL_VARIABLE = "MPIRT_SHELL"

# Which exec sub-protocol is tried first: v4 or v5.
PROTOCOL_VARIABLE = "MPIRT_PROTOCOL"

# How many seconds a keeper holds a command without a connection; how long a node may be out of reach; from TERM to
# KILL; and the job and attempt of this launcher.
LEASE_VARIABLE = "MPIRT_LEASE"
NODE_PATIENCE_VARIABLE = "MPIRT_NODE_PATIENCE"
GRACE_VARIABLE = "MPIRT_GRACE"
FENCE_VARIABLE = "MPIRT_FENCE"

# Where a launcher's account is written: the file of its container's termination message.
ACCOUNT_VARIABLE = "MPIRT_ACCOUNT"

# `off`: each command gets a switchboard of its own; a folder: where the switchboard's socket is.
SWITCHBOARD_VARIABLE = "MPIRT_SWITCHBOARD"

# Which job mpirt-discover is about, where its command line doesn't say; one of them at most.
JOB_VARIABLE = "MPIRT_JOB"
STATEFULSET_VARIABLE = "MPIRT_STATEFULSET"
SELECTOR_VARIABLE = "MPIRT_SELECTOR"
# Where the downward API has put the launcher pod's labels.
LABELS_FILE_VARIABLE = "MPIRT_POD_LABELS"
LABELS_FILE = "/etc/podinfo/labels"
# How long it may take for an answer, and for the first answer to horovodrun.
TIMEOUT_VARIABLE = "MPIRT_DISCOVER_TIMEOUT"
FIRST_VARIABLE = "MPIRT_DISCOVER_FIRST_TIMEOUT"
# From the program that asks the switchboard to the one that asks the API server: when it began, in milliseconds of
# CLOCK_MONOTONIC, a space, and why the switchboard has no answer.
ASKED_VARIABLE = "MPIRT_DISCOVER_ASKED"

# Where a launcher has the runtime folder, and the variable that says so if it has it elsewhere: kubexec.sh alone,
# mounted at its path, has to find the rest of it. images/agent/launch.c is of the same opinion.
RUNTIME_PATH = "/opt/mpirt"
RUNTIME_VARIABLE = "MPIRT_RUNTIME"

# What the controller puts into the pods of a job: the hostfile and the scripts.
MPI_FOLDER = "/etc/mpi"
HOSTFILE = "hostfile"

# On whatever mpi-operator makes, and so on whatever we make in its place.
KUBEFLOW_OPERATOR_LABEL = "training.kubeflow.org/operator-name"
