"""
The MPIJob of the first users, as they published it.

It asks for a GPU for each worker, so nodes are told to have some. Unchanged are all fields and the launcher's command,
with the minute that they slept because their launcher came too early. Two things differ: the images, and how the
workers come by the training program: theirs clone it from a server that only they can reach.
"""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.ground import Ground
from tests.kube.wait import until

GPU = "nvidia.com/gpu"

# What their repository, their requirements and their init.sh brought: the program, and Python by the name of python.
_FETCH = """\
mkdir simple_ml && cd simple_ml && ln -s /usr/bin/python3 /usr/local/bin/python && cat > main_with_horovod.py <<'END'
import socket

import horovod.torch as hvd
import torch

hvd.init()
torch.manual_seed(hvd.rank())
model = torch.nn.Linear(4, 1)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
for step in range(2):
    inputs = torch.randn(8, 4)
    loss = torch.nn.functional.mse_loss(model(inputs), inputs.sum(dim=1, keepdim=True))
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter -= 0.1 * hvd.allreduce(parameter.grad, name=f"{step}.{number}")
weights = ",".join(f"{each:.4f}" for each in model.weight[0].tolist())
print(f"host={socket.gethostname()} rank={hvd.rank()} of {hvd.size()} weights={weights}", flush=True)
END
"""


def manifest(name: str, image: str) -> dict[str, Any]:
    """The object."""
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "mpiReplicaSpecs": {
                "Launcher": {
                    "replicas": 1,
                    "template": {
                        "spec": {
                            "containers": [
                                {
                                    "args": [
                                        "sleep 1m && mkdir simple_ml && cd simple_ml && "
                                        "horovodrun -np 2 --hostfile /etc/mpi/hostfile "
                                        "python main_with_horovod.py"
                                    ],
                                    "command": ["/bin/sh", "-c"],
                                    "image": image,
                                    "name": "horovod-master",
                                }
                            ]
                        }
                    },
                },
                "Worker": {
                    "replicas": 2,
                    "template": {
                        "spec": {
                            "containers": [
                                {
                                    "args": [f"{_FETCH}sleep infinity"],
                                    "command": ["/bin/sh", "-c"],
                                    "image": image,
                                    "name": "horovod-worker",
                                    "resources": {"limits": {GPU: 1}},
                                }
                            ],
                            "tolerations": [{"effect": "NoSchedule", "key": "gpu", "operator": "Exists"}],
                        }
                    },
                },
            },
            "runPolicy": {"cleanPodPolicy": "Running"},
            "slotsPerWorker": 1,
        },
    }


def give_gpus(cluster: Ground) -> None:
    """
    Say of every node that it has GPUs, as a device plugin would.

    They stay: other runs may be using them, and nobody else asks.
    """
    for node in cluster.kubectl.ready_nodes():
        until(lambda name=node: _has_gpus(cluster, name), within=30, what=f"GPUs on {node}")


def _has_gpus(cluster: Ground, name: str) -> bool:
    node = cluster.kubectl.get("node", name)
    if GPU in node["status"]["allocatable"]:
        return True
    for held in ("capacity", "allocatable"):
        node["status"][held][GPU] = "8"
    # The node itself writes there, too; then once more.
    path = f"/api/v1/nodes/{name}/status"
    done = cluster.kubectl("replace", "--raw", path, "--filename=-", stdin=json.dumps(node), check=False)
    return done.returncode == 0
