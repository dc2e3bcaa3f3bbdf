#!/bin/sh
# Fails unless two processes train together, with torch and Horovod's Gloo, in the root file system $1, and unless
# people who are not root may use both.
set -eu
export PYTHONDONTWRITEBYTECODE=1
chroot "$1" horovodrun --check-build | tee /dev/stderr | grep --fixed-strings '[X] Gloo'

chroot --userspec=65534:65534 "$1" python3 -c 'import horovod.torch, torch'

# Horovod looks up these two names; every container knows them.
echo "127.0.0.1 localhost $(hostname)" > "$1/etc/hosts"
# It keeps notes in its home about hosts that it has reached.
mkdir "$1/proof"
cat > "$1/proof/train.py" <<'END'
import horovod.torch as hvd
import torch

hvd.init()
model = torch.nn.Linear(2, 1)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
before = model.weight.tolist()
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
torch.nn.functional.mse_loss(model(torch.ones(4, 2) + hvd.rank()), torch.full((4, 1), 9.0)).backward()
optimizer.step()
after = model.weight.tolist()
assert after != before, "the optimizer's step changed nothing"
assert hvd.allgather_object(after) == [after] * 2, "the two processes do not agree"
END
HOME=/proof chroot "$1" horovodrun -np 2 -H localhost:2 --network-interfaces lo python3 /proof/train.py
rm -r "$1/etc/hosts" "$1/proof"
