#!/bin/sh
# Fails unless two ranks in the root file system $1 reach each other.
set -eu
echo "127.0.0.1 localhost $(hostname)" > "$1/etc/hosts"
I_MPI_ROOT=/opt/intel/mpi chroot "$1" /opt/intel/mpi/bin/mpiexec.hydra -n 2 /opt/intel/mpi/bin/IMB-MPI1 barrier
rm "$1/etc/hosts"
