"""
The job of examples/horovod-elastic on the test cluster.

Owns: reading the example, and the little that is another here: image names, how many workers, and how often they
look for work. Everything else is as users have it. And the baseline: what people have today, under the paths where
the example has mpirt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from testbed.ground import Namespace
from testbed.kube.paths import PROJECT
from testbed.kube.wait import until
from testbed.manifests import Manifest
from tests.e2e import files, kubectl_agent
from tests.e2e.elastic import training
from tests.e2e.elastic.training import Training

FOLDER = PROJECT / "examples" / "horovod-elastic"

# Without the variable horovodrun calls `ssh`, and the only one in the launcher is the shim.
BY_SSH_SHIM: Mapping[str, str | None] = {"OMPI_MCA_plm_rsh_agent": None}
DISCOVERY_BINDING = "launcher-discover"

_PROGRAMS = "/opt/mpirt/bin"
_FILLED = "/opt/mpirt/filled"


@contextmanager
def started(
    namespace: Namespace,
    *,
    workers: int,
    variables: Mapping[str, str | None] | None = None,
    by_kubectl: bool = False,
) -> Iterator[Training]:
    """
    Start the example with so many workers, and follow it until it trains in a world of them.

    `variables` of the launcher differ from the example's; None takes one away. `by_kubectl` is the baseline.
    """
    kubectl = namespace.kubectl
    others = {**training.SELDOM, **(variables or {})}
    kubectl.apply(*_adapted(namespace, workers=workers, variables=others, by_kubectl=by_kubectl))
    namespace.wait_until_all_ready("statefulset/worker")
    pod = until(lambda: _launcher(namespace), within=60, what="the launcher's pod")
    if by_kubectl:
        until(lambda: _is_running(namespace, pod, "initContainerStatuses"), within=60, what=f"{pod} to be filled")
        _fill(namespace, pod)
    until(lambda: _is_running(namespace, pod, "containerStatuses"), within=60, what=f"{pod} to start")
    try:
        with training.followed(namespace, pod) as run:
            run.world(workers, since=0.0, within=120)
            yield run
    finally:
        # Before its pod goes, or it would make another one.
        kubectl("delete", "job", "launcher", "--wait=false", check=False)


def list_hosts(run: Training, hosts: Sequence[str]) -> None:
    """Have the baseline's script say these hosts from now on."""
    script = _printing(hosts).encode()
    files.put(run.namespace, run.pod, f"{_PROGRAMS}/mpirt-discover", script, mode="755", container="launcher")


def _adapted(
    namespace: Namespace, *, workers: int, variables: Mapping[str, str | None], by_kubectl: bool
) -> list[Manifest]:
    """The example's objects, with the little that is another here."""
    objects = _objects(namespace)
    horovod = namespace.ground.image("horovod")
    by_kind = {item["kind"]: item["spec"] for item in objects if item["kind"] in {"StatefulSet", "Job"}}
    by_kind["StatefulSet"]["replicas"] = workers
    by_kind["StatefulSet"]["template"]["spec"]["containers"][0]["image"] = horovod
    pod = by_kind["Job"]["template"]["spec"]
    [init], [main] = pod["initContainers"], pod["containers"]
    env = {item["name"]: item["value"] for item in main["env"]} | dict(variables)
    main |= {"image": horovod, "env": [{"name": k, "value": v} for k, v in env.items() if v is not None]}
    if by_kubectl:
        wait = f"until [ -e {_FILLED} ]; do sleep 0.1; done"
        init |= {"image": horovod, "command": ["/bin/sh", "-c", wait], "args": []}
    else:
        init["image"] = namespace.ground.image("runtime")
    return objects


def _objects(namespace: Namespace) -> list[Manifest]:
    """What `kubectl apply -k` would make of the example."""
    text = namespace.kubectl("create", "--dry-run=client", "--output=json", f"--kustomize={FOLDER}").stdout
    decoder = json.JSONDecoder()
    found: list[Manifest] = []
    while text := text.lstrip():
        item, end = decoder.raw_decode(text)
        found += item["items"] if item["kind"] == "List" else [item]
        text = text[end:]
    return found


def _fill(namespace: Namespace, pod: str) -> None:
    """Put kubectl, an agent that calls it, and a script that always says the same where mpirt would be."""
    kubectl = f"{_PROGRAMS}/kubectl"
    discovery = _printing([f"worker-{number}" for number in range(4)])
    for path, content in {
        kubectl: namespace.ground.kubectl.program.read_bytes(),
        f"{_PROGRAMS}/kubexec.sh": kubectl_agent.script(kubectl),
        f"{_PROGRAMS}/mpirt-discover": discovery.encode(),
    }.items():
        files.put(namespace, pod, path, content, mode="755", container="mpirt")
    # The container ends by it, sometimes before kubectl has an answer.
    namespace.kubectl("exec", pod, "--container=mpirt", "--", "touch", _FILLED, check=False)


def _printing(hosts: Sequence[str]) -> str:
    """A script that always says the same."""
    return "#!/bin/sh\n" + "".join(f"echo {host}:1\n" for host in hosts)


def _launcher(namespace: Namespace) -> str:
    pods = namespace.kubectl.get("pods", "--selector=app=launcher")
    return str(pods[0]["metadata"]["name"]) if pods else ""


def _is_running(namespace: Namespace, pod: str, statuses: str) -> bool:
    """Whether the pod's container runs, or has run."""
    status = namespace.kubectl.get("pod", pod)["status"].get(statuses, [])
    return bool(status) and not status[0]["state"].get("waiting")
