"""
The examples that mpi-operator 0.8.2 publishes in its folder examples/v2beta1, field by field.

Only the images' names and the sizes are not theirs.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

Body = dict[str, Any]

PI = "/home/mpiuser/pi"
_SSHD = ["-De", "-f", "/home/mpiuser/.sshd_config"]
_HOROVOD = [
    *("-bind-to", "none", "-map-by", "slot"),
    *("-x", "LD_LIBRARY_PATH", "-x", "PATH", "-mca", "pml", "ob1", "-mca", "btl", "^openib", "python"),
]
_BENCHMARK = "scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py"
_BENCHMARK_OPTIONS = ["--model=resnet101", "--batch_size=64", "--variable_update=horovod"]
_SMALL = {"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}
_USER = {"securityContext": {"runAsUser": 1000}}
_ALWAYS = {"imagePullPolicy": "Always"}


def _job(name: str, launcher: Body, worker: Body, *, policy: Mapping[str, Any], **spec: Any) -> Body:
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "slotsPerWorker": 1,
            "runPolicy": {"cleanPodPolicy": "Running", **policy},
            **spec,
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": {"spec": {"containers": [launcher]}}},
                "Worker": {"replicas": 2, "template": {"spec": {"containers": [worker]}}},
            },
        },
    }


def _container(name: str, image: str, *fields: Mapping[str, Any]) -> Body:
    made: Body = {"name": name, "image": image}
    for each in fields:
        made |= each
    return made


def _pi_with_hydra(implementation: str, image: str) -> Body:
    """The programs stand in `args`, for an entrypoint to run; `command` is there and says nothing."""
    probe = {"readinessProbe": {"tcpSocket": {"port": 2222}, "initialDelaySeconds": 2}}
    launcher = _container("mpi-launcher", image, _ALWAYS, _USER, {"args": ["mpirun", "-n", "2", PI]}, _SMALL)
    worker = _container(
        "mpi-worker", image, _ALWAYS, _USER, {"command": None, "args": ["/usr/sbin/sshd", *_SSHD]}, probe, _SMALL
    )
    where = {"sshAuthMountPath": "/home/mpiuser/.ssh", "mpiImplementation": implementation}
    return _job("pi", launcher, worker, policy={}, **where)


def _horovod(name: str, command: Sequence[str], args: Sequence[str]) -> tuple[Body, Body]:
    launcher = _container(name, "horovod", {"command": list(command)}, {"args": list(args)} if args else {})
    return launcher, _container(name, "horovod")


def _pi() -> Body:
    launcher = _container(
        "mpi-launcher", "mpi-pi", _USER, {"command": ["mpirun"], "args": ["-n", "2", PI]}, _SMALL
    )
    worker = _container("mpi-worker", "mpi-pi", _USER, {"command": ["/usr/sbin/sshd"], "args": _SSHD}, _SMALL)
    policy = {"ttlSecondsAfterFinished": 60}
    return _job("pi", launcher, worker, policy=policy, sshAuthMountPath="/home/mpiuser/.ssh")


def _mnist() -> Body:
    words = ["-np", "2", "--allow-run-as-root", *_HOROVOD, "/examples/tensorflow_mnist.py"]
    launcher, worker = _horovod("mpi", ["mpirun"], words)
    launcher |= {"name": "mpi-launcher", "resources": {"limits": {"cpu": 1, "memory": "2Gi"}}}
    worker |= {"name": "mpi-worker", "resources": {"limits": {"cpu": 2, "memory": "4Gi"}}}
    return _job("tensorflow-mnist", launcher, worker, policy={})


def _benchmarks() -> Body:
    bound = [*_HOROVOD[:4], "-x", "NCCL_DEBUG=INFO", *_HOROVOD[4:]]
    words = ["mpirun", "--allow-run-as-root", "-np", "2", *bound, _BENCHMARK, *_BENCHMARK_OPTIONS]
    launcher, worker = _horovod("tensorflow-benchmarks", words, [])
    worker |= {"resources": {"limits": {"nvidia.com/gpu": 1}}}
    return _job("tensorflow-benchmarks", launcher, worker, policy={})


EXAMPLES: Mapping[str, Body] = {
    "pi/pi.yaml": _pi(),
    "pi/pi-intel.yaml": _pi_with_hydra("Intel", "mpi-pi:intel"),
    "pi/pi-mpich.yaml": _pi_with_hydra("MPICH", "mpi-pi:mpich"),
    "horovod/tensorflow-mnist.yaml": _mnist(),
    "tensorflow-benchmarks/tensorflow-benchmarks.yaml": _benchmarks(),
}


def example(path: str, *, image: str = "", **limits: Any) -> Body:
    """One of them as a user applies it, with another image and other sizes if need be."""
    job = copy.deepcopy(EXAMPLES[path])
    for replica in job["spec"]["mpiReplicaSpecs"].values():
        for container in replica["template"]["spec"]["containers"]:
            if image:
                container["image"] = image
            if limits:
                container["resources"] = {"limits": limits}
    return job
