"""
Fits a line on two workers: each computes the gradient of its own data, and DeepSpeed adds the gradients up.

It runs on CPUs and on any torch. On GPUs leave the backend to DeepSpeed, and let deepspeed.initialize() do the
rest.
"""

import socket

import deepspeed.ops
import torch
from deepspeed import comm

# Else DeepSpeed compiles an operation for ranks that share a machine, which takes a compiler in the image.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
deepspeed.init_distributed(dist_backend="gloo")
rank, size = comm.get_rank(), comm.get_world_size()

torch.manual_seed(rank)
model = torch.nn.Linear(1, 1)
for parameter in model.parameters():
    comm.broadcast(parameter.data, src=0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _step in range(100):
    x = torch.rand(32, 1)
    loss = torch.nn.functional.mse_loss(model(x), 3 * x + 1)
    optimizer.zero_grad()
    loss.backward()
    for parameter in model.parameters():
        comm.all_reduce(parameter.grad)
        parameter.grad /= size
    optimizer.step()

total = torch.tensor([float(rank + 1)])
comm.all_reduce(total)
told = f"host={socket.gethostname()} rank={rank} size={size} sum={total.item():g} loss={loss.item():.4f}"
# At once: the ranks' lines would be mixed otherwise.
print(f"{told}\n", end="", flush=True)
