"""
The MPIJob of the first users, as they published it.

Two things differ: the images, and how workers come by the training program, for theirs clone it from a server that
only they can reach. The launcher still sleeps for the minute that it needed because it came too early. Each worker
asks for a GPU, so nodes are told to have some.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import yaml

from testbed.ground import Ground
from testbed.kube.wait import until

_GPU = "nvidia.com/gpu"

_MANIFEST = """
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata:
  name: sw-simple-ml-gitlab
spec:
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
          - args:
            - sleep 1m && mkdir simple_ml && cd simple_ml && horovodrun -np 2 --hostfile
              /etc/mpi/hostfile python main_with_horovod.py
            command:
            - "/bin/sh"
            - "-c"
            image: horovod-sw-base
            name: horovod-master
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - args:
            - git clone && cd simple_ml && pip install -r requirements.txt && chmod +x init.sh
              && ./init.sh && sleep infinity
            command:
            - "/bin/sh"
            - "-c"
            image: horovod-sw-base
            name: horovod-worker
            resources:
              limits:
                nvidia.com/gpu: 1
          tolerations:
          - effect: NoSchedule
            key: gpu
            operator: Exists
  runPolicy:
    cleanPodPolicy: Running
  slotsPerWorker: 1
"""

_PROGRAM = """
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
"""

# What their repository and their scripts brought.
_INIT = """
mkdir simple_ml && cd simple_ml && ln -s "$(command -v python3)" /usr/local/bin/python &&
cat > main_with_horovod.py <<'END' && sleep infinity
"""


def manifest(name: str, image: str) -> dict[str, Any]:
    """The object."""
    made: dict[str, Any] = yaml.safe_load(_MANIFEST)
    made["metadata"]["name"] = name
    for replica in made["spec"]["mpiReplicaSpecs"].values():
        replica["template"]["spec"]["containers"][0]["image"] = image
    [worker] = made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    worker["args"] = [f"{_INIT.strip()}{_PROGRAM}END\n"]
    return made


def give_gpus(cluster: Ground) -> None:
    """
    Say of every node that it has GPUs, as a device plugin would.

    They stay: other runs may be using them, and nobody else asks.
    """
    for node in cluster.kubectl.ready_nodes():
        until(partial(_has_gpus, cluster, node), within=30, what=f"GPUs on {node}")


def _has_gpus(cluster: Ground, name: str) -> bool:
    node = cluster.kubectl.get("node", name)
    if _GPU in node["status"]["allocatable"]:
        return True
    for held in ("capacity", "allocatable"):
        node["status"][held][_GPU] = "8"
    # The node itself writes there, too, and who comes second has to look again.
    path = f"/api/v1/nodes/{name}/status"
    done = cluster.kubectl("replace", "--raw", path, "--filename=-", stdin=json.dumps(node), check=False)
    return done.returncode == 0
