"""
The elastic TrainingJob of examples/training-job, and what is asked about it.

Owns: reading the example, and the little that is another here: names, images and patience. Everything else is as
users have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import yaml

from testbed.ground import Namespace
from testbed.kube.paths import PROJECT
from tests.e2e import horovod
from tests.e2e.elastic import training
from tests.e2e.elastic.training import Training
from tests.e2e.training import lastwords
from tests.support import trainings

_EXAMPLE = PROJECT / "examples" / "training-job"
_TRAIN = PROJECT / "examples" / "horovod-elastic" / "train.py"
_ENDS_WITHIN = 120.0
# Here no worker is lost, and a busy machine may take long to start one for which the others wait.
_PATIENT = {"HOROVOD_GLOO_TIMEOUT_SECONDS": horovod.START_SECONDS}


class Job(trainings.Training):
    """One TrainingJob in a cluster."""

    def hosts(self) -> list[str]:
        """The hosts that horovodrun gets now."""
        return self._in_launcher("/etc/edl/discover_hosts.sh").split()

    def listed(self, path: str) -> list[str]:
        """The hosts in a file of its launcher."""
        return [line.split()[0].partition(":")[0] for line in self._in_launcher("cat", path).splitlines()]

    def surroundings(self) -> dict[str, Any]:
        """What a test that has waited in vain wants to know."""
        told = self.namespace.kubectl("get", "events", "--sort-by=.lastTimestamp", "--no-headers", check=False)
        return {
            "status": self.status(),
            "pods": {pod["metadata"]["name"]: pod["status"] for pod in [*self.pods(), *self.pods("launcher")]},
            "events": told.stdout.splitlines()[-20:],
        }

    def _in_launcher(self, *command: str) -> str:
        [launcher] = self.pods("launcher")
        call = ("exec", launcher["metadata"]["name"], "--container=launcher", "--", *command)
        return self.namespace.kubectl(*call).stdout


def submit(
    namespace: Namespace,
    name: str,
    *,
    speaks_last: bool = False,
    worker: Mapping[str, Any] | None = None,
    launcher_on: str = "",
    annotations: Mapping[str, str] | None = None,
    spread: Mapping[str, Any] | None = None,
) -> Job:
    """
    Create the example's job under this name.

    `speaks_last`: workers that are told to end list their processes. `worker` has the last word on the workers'
    fields, `launcher_on` names the launcher's node, and `spread` is how workers are spread.
    """
    body = example(namespace)
    body["metadata"]["name"] = name
    body["metadata"]["annotations"] = dict(annotations or {})
    body["spec"]["etReplicaSpecs"]["worker"] |= worker or {}
    if spread:
        labels = {"matchLabels": {"training-job-name": name, "training-job-role": "worker"}}
        pod = body["spec"]["etReplicaSpecs"]["worker"]["template"]["spec"]
        pod["topologySpreadConstraints"] = [{**spread, "labelSelector": labels}]
    if launcher_on:
        on = {"kubernetes.io/hostname": launcher_on}
        body["spec"]["etReplicaSpecs"]["launcher"]["template"]["spec"]["nodeSelector"] = on
    if speaks_last:
        main = body["spec"]["etReplicaSpecs"]["worker"]["template"]["spec"]["containers"][0]
        main["command"] = list(lastwords.COMMAND)
    namespace.kubectl.apply(body)
    return Job(namespace, name)


def example(namespace: Namespace) -> dict[str, Any]:
    """The example's job with this cluster's image; what it trains is in the namespace."""
    files = {_TRAIN.name: _TRAIN.read_text(encoding="utf-8")}
    namespace.kubectl.apply({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "train"}, "data": files,
    })  # fmt: skip
    body: dict[str, Any] = yaml.safe_load((_EXAMPLE / "job.yaml").read_text(encoding="utf-8"))
    here = training.SELDOM | _PATIENT
    for replica in body["spec"]["etReplicaSpecs"].values():
        [main] = replica["template"]["spec"]["containers"]
        main["image"] = namespace.ground.image("horovod")
        env = {each["name"]: each["value"] for each in main.get("env", ())} | here
        main["env"] = [{"name": name, "value": value} for name, value in env.items()]
    return body


@contextmanager
def trains(job: Job, *, size: int) -> Iterator[Training]:
    """Follow the job's log from its launcher's start on; it trains with so many workers."""
    job.wait(lambda: job.phase() == "Running", "to run", within=_ENDS_WITHIN)
    [launcher] = job.pods("launcher")
    with training.followed(job.namespace, launcher["metadata"]["name"]) as run:
        run.world(size, since=0.0, within=_ENDS_WITHIN)
        yield run
