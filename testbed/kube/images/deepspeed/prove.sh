#!/bin/sh
# Fails unless two processes that DeepSpeed starts in the root file system $1 reach each other, and unless what its
# launchers call is there.
set -eu
export PYTHONDONTWRITEBYTECODE=1 DS_ACCELERATOR=cpu
for program in mpirun ompi_info pdsh pkill; do
    chroot "$1" sh -c "command -v $program"
done
chroot "$1" python3 -c 'import mpi4py'
echo "127.0.0.1 localhost $(hostname)" > "$1/etc/hosts"
mkdir "$1/proof"
cat > "$1/proof/train.py" <<'END'
import deepspeed.ops
import torch

deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
deepspeed.init_distributed(dist_backend="gloo")
total = torch.ones(1)
deepspeed.comm.all_reduce(total)
assert total.item() == 2, "the two processes do not agree"
END
HOME=/proof chroot "$1" deepspeed --num_accelerators 2 /proof/train.py
rm -r "$1/etc/hosts" "$1/proof"
