#!/bin/sh
# Fails unless each MPI in the root file system $1 starts two ranks, and those of Intel's reach each other.
set -eu
echo "127.0.0.1 localhost $(hostname)" > "$1/etc/hosts"
I_MPI_ROOT=/opt/intel/mpi chroot "$1" /opt/intel/mpi/bin/mpiexec.hydra -n 2 /opt/intel/mpi/bin/IMB-MPI1 barrier
chroot "$1" /opt/mpich/bin/mpiexec -n 2 true
PRTE_MCA_plm_ssh_agent=/bin/true chroot "$1" \
    /opt/openmpi/bin/mpirun --allow-run-as-root --host localhost:2 -n 2 true
rm "$1/etc/hosts"
