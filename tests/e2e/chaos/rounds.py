"""
A round on the cluster: its commands side by side, each in a pod of its own, and what happens to them meanwhile.

Owns: carrying out a plan, and finding out what came of it. What that is worth is judging.py's.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.ground import Faults, Namespace
from testbed.kube import cluster, faults, nodes
from testbed.kube.errors import ClusterError
from testbed.kube.kubectl import is_ready
from testbed.kube.wait import until
from testbed.manifests import Manifest
from tests.e2e.chaos import judging
from tests.e2e.chaos.judging import End
from tests.e2e.chaos.schedules import COMMANDS, Death, Outage, Plan, Round, Weather
from tests.e2e.rsh import agent
from tests.e2e.rsh.proxy import Proxy, listening
from tests.e2e.rsh.starts import kubeconfig_by_way_of, server_address
from tests.support.kubeconfigs import kubeconfig

# Far beyond a round's outages and the patience of an agent, so that what has not ended by then hangs.
_ENDS_WITHIN = 240.0
_KILLED = "killed"
_RUNS = "/tmp/runs"
# A volume, so that what a command left outlives its container; not its pod.
_VOLUME: Manifest = {
    "volumes": [{"name": "tmp", "emptyDir": {}}],
    "container": {"volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]},
}


@dataclass(frozen=True, slots=True)
class Target:
    """A pod as it is when a round begins."""

    pod: str
    uid: str
    main_pid: int


def start_pods(namespace: Namespace) -> list[str]:
    """The pods that rounds take place in, one after the other."""
    return namespace.workers(COMMANDS, "busybox", **_VOLUME)


def play(namespace: Namespace, pods: Sequence[str], what: Round, fault: Faults) -> list[End]:
    """Let everything of a round happen, and say what came of it."""
    targets = [_target(namespace, pod) for pod in pods]
    folder = namespace.folder / what.seed
    folder.mkdir()
    with ThreadPoolExecutor(COMMANDS) as pool:
        commands = [
            _Command(namespace, folder, target, plan) for target, plan in zip(targets, what.plans, strict=True)
        ]
        ended = [pool.submit(command.run) for command in commands]
        for outage in what.outages:
            _happen(fault, outage)
        codes = [future.result() for future in ended]
    ends = [command.end(code) for command, code in zip(commands, codes, strict=True)]
    _replace_restarted(namespace)
    return ends


def _replace_restarted(namespace: Namespace) -> None:
    """Have new pods for those whose container has died: its next death would be followed by a pause."""
    for item in namespace.kubectl.get("pods"):
        if any(status["restartCount"] for status in item["status"].get("containerStatuses", [])):
            faults.force_delete(namespace.kubectl, item["metadata"]["name"])


def _target(namespace: Namespace, pod: str) -> Target:
    """The pod of that name, when it is Ready; it may be another one than in the round before."""
    item = _when_ready(namespace, pod)
    uid = item["metadata"]["uid"]
    node = faults.node_named(item["spec"]["nodeName"])
    return Target(pod, uid, nodes.main_process_of_pod(node, uid))


def _when_ready(namespace: Namespace, pod: str) -> Manifest:
    """
    The pod, once it is Ready and stays.

    Where it is not, the cluster is healed: a scheduler that finds a pod on a node it knows nothing of ends itself.
    """

    def found() -> Manifest:
        pods = namespace.kubectl.get("pods", f"--field-selector=metadata.name={pod}")
        if pods and is_ready(pods[0]) and "deletionTimestamp" not in pods[0]["metadata"]:
            return dict(pods[0])
        cluster.up()
        return {}

    return until(found, within=120, what=f"{pod} to be ready", instead=lambda: _told(namespace, pod))


def _told(namespace: Namespace, pod: str) -> str:
    return namespace.kubectl("describe", "pod", pod, check=False).stdout[-1000:]


def _happen(fault: Faults, outage: Outage) -> None:
    begin, end = _weather(fault, outage)
    # The schedule's own times; nothing tells of them.
    time.sleep(outage.begins)
    begin()
    time.sleep(outage.lasts)
    end()


def _weather(fault: Faults, outage: Outage) -> tuple[Callable[[], None], Callable[[], None]]:
    def restart(component: str) -> tuple[Callable[[], None], Callable[[], None]]:
        return lambda: fault.kill(component), lambda: fault.start(component)

    match outage.weather:
        case Weather.KILLED:
            return restart("apiserver")
        case Weather.FROZEN:
            return lambda: fault.freeze("apiserver"), lambda: fault.thaw("apiserver")
        case Weather.DROPPED:
            return fault.drop, fault.undrop
        case Weather.RESET:
            return fault.reset, fault.undrop
        case Weather.KUBELET:
            return restart(f"kubelet:{outage.node}")
        case Weather.CONTAINERD:
            return restart(f"containerd:{outage.node}")


class _Command:
    """One command, from its start to what it left."""

    def __init__(self, namespace: Namespace, folder: Path, target: Target, plan: Plan) -> None:
        self._namespace = namespace
        self._target = target
        self._plan = plan
        self._name = f"{folder.name}-{plan.number}"
        self._folder = folder / str(plan.number)
        self._folder.mkdir()
        self._is_tried = False
        self._is_dead = False
        """Both are of its death. It may have happened though the answer was lost: then it has left something."""

    def run(self) -> int | None:
        """See it through. Returns its agent's code, None if that does not end."""
        # The schedule's own times; nothing tells of them.
        time.sleep(self._plan.begins)
        stdin = self._folder / "stdin"
        stdin.write_bytes(judging.stdin_of(self._plan))
        with (
            self._way() as config,
            stdin.open("rb") as given,
            (self._folder / "output").open("wb") as output,
            (self._folder / "errors").open("wb") as errors,
            subprocess.Popen(
                self._argv(), stdin=given, stdout=output, stderr=errors, env=self._environment(config)
            ) as process,
        ):
            try:
                self._die(process)
                return process.wait(_ENDS_WITHIN)
            except subprocess.TimeoutExpired:
                return None
            finally:
                process.kill()

    def end(self, code: int | None) -> End:
        """What came of it, when everything is well again."""
        item = _when_ready(self._namespace, self._target.pod)
        is_replaced = item["metadata"]["uid"] != self._target.uid
        left = self._left()
        return End(
            self._plan,
            code,
            (self._folder / "output").read_bytes(),
            (self._folder / "errors").read_text(errors="replace"),
            runs=sum(line.isdigit() for line in left),
            is_dead=self._is_dead or (self._is_tried and (is_replaced or _KILLED in left)),
            is_replaced=is_replaced,
        )

    def _left(self) -> list[str]:
        """A line for each start, and one if it was killed. A kubelet that has just begun may know no pod."""
        runs = f"{_RUNS}/{self._name}"

        def left() -> list[str]:
            words = ("exec", self._target.pod, "--", "sh", "-c", f"echo left; cat {runs} {runs}.{_KILLED}; true")
            return self._namespace.kubectl(*words, check=False).stdout.splitlines()

        return until(left, within=60, what=f"what {self._name} left")

    def _argv(self) -> list[str]:
        runs = f"{_RUNS}/{self._name}"
        command = f"mkdir -p {_RUNS}; {judging.script(self._plan, runs)}"
        no_stdin = [] if self._plan.stdin else ["-n"]
        return [str(agent.RSH), *no_stdin, "-o", "ConnectTimeout=120", self._target.pod, command]

    def _environment(self, config: Path) -> dict[str, str]:
        return {**os.environ, "KUBECONFIG": str(config)}

    @contextmanager
    def _way(self) -> Iterator[Path]:
        """The kubeconfig of its way to the API server: there, or through what harms its first connection."""
        if self._plan.broken is None:
            yield kubeconfig(self._namespace)
            return
        with listening(Proxy(server_address(self._namespace), self._plan.broken)) as port:
            yield kubeconfig_by_way_of(self._namespace, port)

    def _die(self, process: subprocess.Popen[bytes]) -> None:
        """Have it die when it is time, if it is to die, and has not ended by then."""
        if self._plan.death is None:
            return
        until(lambda: self._has_begun() or process.poll() is not None, within=_ENDS_WITHIN, what="its first line")
        try:
            process.wait(self._plan.dies)
        except subprocess.TimeoutExpired:
            until(
                lambda: process.poll() is not None or self._kill(self._plan.death, process),
                within=_ENDS_WITHIN,
                what=f"{self._plan.death} to happen",
            )

    def _has_begun(self) -> bool:
        return b"\n" in (self._folder / "output").read_bytes()

    def _kill(self, death: Death | None, process: subprocess.Popen[bytes]) -> bool:
        """Whether it has happened for sure. Meanwhile it may be that the API server does not answer."""
        kubectl, pod = self._namespace.kubectl, self._target.pod
        runs = f"{_RUNS}/{self._name}"
        self._is_tried = True
        try:
            match death:
                case Death.MAIN_PROCESS:
                    os.kill(self._target.main_pid, signal.SIGKILL)
                case Death.FORCE_DELETE:
                    faults.force_delete(kubectl, pod)
                case Death.DELETE:
                    kubectl("delete", "pod", pod, "--wait=false", timeout=20)
                case Death.COMMAND:
                    strike = f"kill -9 $(cat {runs}) && echo {_KILLED} > {runs}.{_KILLED}"
                    kubectl.execute(pod, "sh", "-c", strike, timeout=20)
                case _:
                    process.terminate()
        except (ClusterError, subprocess.TimeoutExpired):
            return False
        self._is_dead = True
        return True
