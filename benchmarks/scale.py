"""
What a job of thousands of workers costs: until all its commands run, from a death until all run again, to the end.

Owns: what is run, and the figures. etcd, API server, Kubernetes' controllers, mpirt's controller, agents,
switchboard and keepers are real. Nodes, pods and ranks are not: KWOK plays the pods, a program waits in place of
MPI's daemons, and a process of testbed/plane answers for all kubelets.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import click
import psutil

from benchmarks.agents import agent, switchboard_folder
from benchmarks.frame import Report, Row, Unmeasured, command, compared
from benchmarks.manyjobs import peak_megabytes
from benchmarks.place import plain_environment
from benchmarks.plot import Panel, svg
from benchmarks.programs import Crowd, cpu_seconds, crowd, pss_bytes, run
from testbed.ground import Ground
from testbed.kube import programs
from testbed.kube.kubectl import Kubectl
from testbed.kube.progress import step
from testbed.kube.wait import until
from testbed.mpijobs import manifest
from testbed.plane import kubelet, nodes, plane, shared
from testbed.plane.children import Child
from testbed.plane.kubelet import Kubelet
from testbed.plane.plane import APISERVER, OwnPlane
from testbed.plane.stages import ENDS, NEVER
from tests.api import controllers
from tests.api.controllers import Controller
from tests.support.kubeconfigs import kubeconfig
from tests.support.switchboards import SWITCHBOARD, pid_of

_FENCE = "MPIRT_FENCE"
_JOB, _DAEMON, _PIPE, _UP = "scale", "orted", "pipe", "up"
# A kubelet's default is 110.
_PODS_OF_A_NODE = 100
# A process that answers for kubelets has five descriptors for each command, and the switchboard has three.
_COMMANDS_OF_A_KUBELET = 2500
_OF_A_KUBELET, _OF_A_SWITCHBOARD, _MORE_DESCRIPTORS = 5, 3, 200
_WITHIN = 3600
# Kubernetes' own default.
_QPS = 20
# So many have to be up within so many seconds.
_BOUNDED, _UP_SECONDS, _AGAIN_SECONDS = 1000, 12, 20
_KILLED = 128 + signal.SIGKILL
# Of what agents and switchboard have written.
_SHOWN = 10
_IDLE_SECONDS = 15.0

# Each reads one byte of the same pipe. A pipe that is open for both never ends.
_WAITS = "#!/bin/sh\nexec 3<>{}\necho {}\nread -r line <&3\n"
_NUMBER = "ess_base_vpid"
# What mpirun of Open MPI 4 tells each of its daemons; it shortens the names of the hosts like that.
_WORDS = (
    f'{_DAEMON} -mca ess "env" -mca ess_base_jobid "2981822464" -mca {_NUMBER} {{number}} '
    '-mca ess_base_num_procs "{count}" -mca orte_node_regex "scale-worker-[4:0-{count}]@0({count})" '
    '-mca orte_hnp_uri "2981822464.0;tcp://10.244.0.7:43217" -mca plm "rsh" -mca pmix "^s1,s2,cray,isolated"'
)

_WHAT = {
    "complete_s": "the StatefulSet is complete, s after the job's creation",
    "launcher_s": "the job is Running, s after its creation",
    "sessions_up_s": "all commands run, s after the start of the first",
    "apply_to_all_s": "both of them, s",
    "sessions_cpu_s": "CPU of everything until all commands run, s",
    "restart_s": "all commands run again, s after a daemon was killed",
    "ended_s": "all commands have ended, s",
    "failed": "commands that did not end with 0",
    "succeeded_s": "from the launcher's end to Succeeded, s",
    "apiserver_mb_per_session": "API server: memory for each command, garbage aside, MB",
    "apiserver_mb": "API server: memory of the process with all commands, MB",
    "apiserver_cpu_s": "API server: CPU until all commands run, s",
    "apiserver_idle_percent": "API server: CPU with idle commands, %",
    "switchboard_mb": "switchboard: memory with all commands, MB",
    "switchboard_cpu_s": "switchboard: CPU until all commands run, s",
    "switchboard_idle_percent": "switchboard: CPU with idle commands, %",
    "agents_mb": "agents: memory of all, MB",
    "kubelets_cpu_s": "in place of kubelets: CPU until all commands run, s",
    "controller_mb": "controller: memory at most, MB",
    "controller_cpu_s": "controller: CPU for all of the job, s",
}


@command(
    click.option("--workers", "counts", type=click.IntRange(1), multiple=True, default=(100, 1000, 5000),
                 show_default=True, help="Workers of the job; may be given several times."),
    click.option("--kube-api-qps", "qps", type=click.IntRange(1), default=_QPS, show_default=True,
                 help="Writes a second of each of Kubernetes' controllers."),
    click.option("--plot", type=click.Path(dir_okay=False, writable=True, path_type=Path),
                 help="Draw time and memory over the number of workers into this SVG."),
)  # fmt: skip
def scale(*, counts: Sequence[int], qps: int, plot: Path | None) -> Report:
    """
    A job of thousands of workers, through a real API server, on a control plane without nodes. Needs no root.

    A launcher starts a command in each worker. When the last one runs, one is killed, and the launcher fails. The
    next one starts them again, and all end.
    """
    found = {count: _measured(count, qps) for count in sorted(set(counts))}
    if plot is not None:
        plot.write_text(svg(_panels(found), across="workers"), encoding="utf-8")
    # Where there are several sizes, each figure has one in its name.
    rows = [
        Row(f"{key}_{count}" if len(found) > 1 else key, f"{count}: {_WHAT[key]}", [figures[key]])
        for count, figures in found.items()
        for key in _WHAT
    ]
    limits = {"sessions_up_s": _UP_SECONDS, "restart_s": _AGAIN_SECONDS}
    bounds = {
        row.key: limit for key, limit in limits.items() for row in rows if row.what == f"{_BOUNDED}: {_WHAT[key]}"
    }
    notes = [f"{qps} writes a second of each of Kubernetes' controllers"]
    return compared(rows, ours="mpirt", theirs="-", notes=notes, bounds=bounds)


def _measured(count: int, qps: int) -> dict[str, float]:
    """All figures of a job with so many workers, on a control plane of its own."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(min(count, _COMMANDS_OF_A_KUBELET) * _OF_A_KUBELET, count * _OF_A_SWITCHBOARD) + _MORE_DESCRIPTORS
    if most < wanted:
        raise Unmeasured(f"{count} workers take {wanted} descriptors; the limit is {most}")
    with tempfile.TemporaryDirectory(prefix="mpirt-scale-") as name:
        folder, binaries = Path(name), programs.ensure(shared.version())
        with plane.running(folder / "plane", binaries, names=(), qps=qps) as own, ExitStack() as stack:
            kubelets = _add_nodes(own, count)
            cluster = Ground(own.kubectl, is_ours=False)
            controller = controllers.install(own, cluster, folder, program=controllers.WITHOUT_A_LEASE)
            stack.callback(controller.replicas[0].end)
            return _Trial(own, controller, _home(folder), kubelets, count).figures()


def _add_nodes(own: OwnPlane, count: int) -> dict[str, Kubelet]:
    """Add nodes for so many pods, and one for the launcher; returns the kubelet of each."""
    kubelets: dict[str, Kubelet] = {}
    for first in range(0, count + 1, _COMMANDS_OF_A_KUBELET):
        where = kubelet.somewhere(own.site)
        numbers = range(first, min(first + _COMMANDS_OF_A_KUBELET, count + 1), _PODS_OF_A_NODE)
        names = [f"node-{number}" for number in numbers]
        nodes.add(own.kubectl, names, pods=_PODS_OF_A_NODE, kubelet=where)
        kubelets |= dict.fromkeys(names, where)
    return kubelets


def _home(folder: Path) -> Path:
    """What all pods have in common: the program in place of a daemon, and the pipe that it waits for."""
    home = folder / "home"
    program = home / "bin" / _DAEMON
    program.parent.mkdir(parents=True)
    program.write_text(_WAITS.format(home / _PIPE, _UP))
    program.chmod(0o755)
    os.mkfifo(home / _PIPE)
    return home


@dataclass(frozen=True)
class _Trial:
    """One job."""

    own: OwnPlane
    controller: Controller
    home: Path
    kubelets: Mapping[str, Kubelet]
    """By their nodes."""
    count: int

    def figures(self) -> dict[str, float]:
        pid = self.controller.replicas[0].process.process.pid
        cpu = cpu_seconds(pid)
        started = self._started()
        with self._answering() as kubelets:
            found = started | self._held(kubelets)
        found["succeeded_s"] = self._succeeded()
        found["apply_to_all_s"] = found["launcher_s"] + found["sessions_up_s"]
        return {**found, "controller_cpu_s": cpu_seconds(pid) - cpu, "controller_mb": peak_megabytes(pid)}

    def _started(self) -> dict[str, float]:
        """Create the job, until its launcher runs."""
        launcher = {"annotations": {"Launcher": {ENDS: NEVER}}}
        # A spread over nodes would cost the scheduler more than all the rest.
        job = manifest(_JOB, "none", ("mpirun",), workers=self.count, worker={"topologySpreadConstraints": []},
                       launcher={}, container={}, **launcher)  # fmt: skip
        with step(f"{self.count} workers"):
            began = time.monotonic()
            self._kubectl("create", "--filename=-", stdin=json.dumps(job))
            self._wait(f"statefulset/{_JOB}-worker", "create")
            self._wait(f"statefulset/{_JOB}-worker", f"jsonpath={{.status.readyReplicas}}={self.count}")
            complete = time.monotonic()
            self._wait(f"mpijob/{_JOB}", "condition=Running")
            return {"complete_s": complete - began, "launcher_s": time.monotonic() - began}

    @contextmanager
    def _answering(self) -> Iterator[list[Child]]:
        """Have the kubelets answer, each for its pods."""
        pods: dict[Kubelet, list[str]] = {}
        for pod in self._kubectl.get("pods", "--selector=training.kubeflow.org/job-role=worker"):
            pods.setdefault(self.kubelets[pod["spec"]["nodeName"]], []).append(pod["metadata"]["name"])
        with ExitStack() as stack:
            with step(f"namespaces of {self.count} pods"):
                running = [
                    stack.enter_context(kubelet.running(where, self.own.site, self.home, pods=names))
                    for where, names in pods.items()
                ]
            yield running

    def _held(self, kubelets: Sequence[Child]) -> dict[str, float]:
        """Run a command in each worker; when the last one runs, have one fail, and run all again to their ends."""
        env = self._environment()
        self._bring_the_keeper(env)
        # All launchers of this benchmark are the same container: by that, keepers could not tell them apart.
        attempts = ({**env, _FENCE: f"{env[_FENCE]}:{number}"} for number in (1, 2))
        with switchboard_folder() as board:
            found, killed = self._until_one_is_killed(board, next(attempts), kubelets)
        with switchboard_folder() as board, self._commands(board, next(attempts)) as commands:
            found["restart_s"] = time.monotonic() - killed
            began = time.monotonic()
            (self.home / _PIPE).write_bytes(b"\n" * self.count)
            failed = self.count - commands.codes()[0]
            log = board / "log"
            for line in [*commands.messages(), *(log.read_text().splitlines() if log.exists() else [])][:_SHOWN]:
                click.echo(line, err=True)
        return {**found, "ended_s": time.monotonic() - began, "failed": failed}

    def _until_one_is_killed(
        self, board: Path, env: Mapping[str, str], kubelets: Sequence[Child]
    ) -> tuple[dict[str, float], float]:
        """The figures of commands that run, and when one of them was killed; the next launcher runs by then."""
        server, others = self.own.children[APISERVER].process.pid, [each.process.pid for each in kubelets]
        memory, cpu, others_cpu = self._live_bytes(), cpu_seconds(server), sum(map(cpu_seconds, others))
        everything = _cpu_of_all()
        with self._commands(board, env) as commands:
            pid = pid_of(board)
            found = {
                "sessions_up_s": commands.up_seconds,
                "apiserver_cpu_s": cpu_seconds(server) - cpu,
                "switchboard_cpu_s": cpu_seconds(pid),
                "kubelets_cpu_s": sum(map(cpu_seconds, others)) - others_cpu,
                "sessions_cpu_s": _cpu_of_all(pid) - everything,
                **_idle({"apiserver": server, "switchboard": pid}),
                "apiserver_mb": pss_bytes(server) / 1e6,
                "apiserver_mb_per_session": (self._live_bytes() - memory) / 1e6 / self.count,
                "switchboard_mb": pss_bytes(pid) / 1e6,
                "agents_mb": commands.pss_bytes() / 1e6,
            }
            return found, self._failed(commands, pid, kubelets)

    @contextmanager
    def _commands(self, board: Path, env: Mapping[str, str]) -> Iterator[Crowd]:
        """One in each worker."""
        argvs = [
            agent(f"{_JOB}-worker-{number}", *_WORDS.format(number=number + 1, count=self.count).split())
            for number in range(self.count)
        ]
        with (
            step(f"{self.count} commands"),
            crowd(argvs, env={**env, SWITCHBOARD: str(board)}, sign=_UP) as commands,
        ):
            yield commands

    def _failed(self, commands: Crowd, switchboard: int, kubelets: Sequence[Child]) -> float:
        """
        Have the attempt fail, as by a rank that dies, until the next launcher runs; returns when that began.

        mpirun ends with its first daemon, and with it all that runs in its container, at once.
        """
        daemon = _daemon(kubelets, self.count)
        [launcher] = self._launchers()
        with step("the next attempt"):
            began = time.monotonic()
            daemon.kill()
            if (code := commands.programs[-1].wait(_WITHIN)) != _KILLED:
                raise Unmeasured(f"a command that was killed has ended with {code}")
            for pid in (switchboard, *(each.pid for each in commands.programs[:-1])):
                os.kill(pid, signal.SIGKILL)
            self._kubectl("annotate", "pod", launcher, "--overwrite", f"{ENDS}=1")
            until(lambda: self._launchers() not in ([], [launcher]), within=_WITHIN, what="the next launcher")
        return began

    def _launchers(self) -> list[str]:
        """The launcher pods that run."""
        pods = self._kubectl.get("pods", f"--selector=job-name={_JOB}-launcher")
        return [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Running"]

    def _succeeded(self) -> float:
        """End the launcher."""
        began = time.monotonic()
        self._kubectl("annotate", "pod", *self._launchers(), "--overwrite", f"{ENDS}=0")
        self._wait(f"mpijob/{_JOB}", "condition=Succeeded")
        return time.monotonic() - began

    def _environment(self) -> dict[str, str]:
        """The launcher's: its variables, and its account."""
        [container] = self._kubectl.get("job", f"{_JOB}-launcher")["spec"]["template"]["spec"]["containers"]
        variables = {each["name"]: each["value"] for each in container["env"] if "value" in each}
        config = kubeconfig(self.controller.namespace, account=f"{_JOB}-launcher")
        account = self.home / "account"
        account.touch()
        return {**plain_environment(), **variables, "MPIRT_ACCOUNT": str(account), "KUBECONFIG": str(config)}

    def _bring_the_keeper(self, env: Mapping[str, str]) -> None:
        """Pods have it in a volume. Here a first command brings it to its pod's folder, from where all get it."""
        with switchboard_folder() as board:
            run(agent(f"{_JOB}-worker-0", "true"), env={**env, SWITCHBOARD: str(board)})
        for found in self.home.glob("*/mpirt-keeper-*"):
            found.rename(self.home / found.name)

    def _live_bytes(self) -> int:
        """What the API server holds, garbage aside: heap and stacks."""
        page = self._kubectl("get", "--raw", "/debug/pprof/heap?gc=1&debug=1").stdout
        return sum(int(found) for found in re.findall(r"^# (?:HeapAlloc|Stack) = (\d+)", page, re.MULTILINE))

    def _wait(self, what: str, for_what: str) -> None:
        self._kubectl("wait", what, f"--for={for_what}", f"--timeout={_WITHIN}s", timeout=_WITHIN)

    @property
    def _kubectl(self) -> Kubectl:
        return self.controller.namespace.kubectl


def _daemon(kubelets: Sequence[Child], number: int) -> psutil.Process:
    """The one with this number: a shell that runs the script."""
    parents = [psutil.Process(each.process.pid) for each in kubelets]
    for process in (each for parent in parents for each in parent.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            _, *words = process.cmdline() or [""]
            if Path(next(iter(words), "")).name == _DAEMON and words[words.index(_NUMBER) + 1] == str(number):
                return process
    raise Unmeasured(f"daemon {number} does not run")


def _cpu_of_all(*others: int) -> float:
    """CPU time so far of this process and others, and of all that they have started, ended or not."""
    parents = map(psutil.Process, (os.getpid(), *others))
    found = 0.0
    for process in (each for parent in parents for each in (parent, *parent.children(recursive=True))):
        # psutil has whole hundredths of a second, of which most of them need less.
        with suppress(psutil.NoSuchProcess, Unmeasured):
            found += cpu_seconds(process.pid) + sum(process.cpu_times()[2:4])
    return found


def _idle(pids: Mapping[str, int]) -> dict[str, float]:
    """The CPU time of these processes while nothing happens."""
    before, began = {name: cpu_seconds(pid) for name, pid in pids.items()}, time.monotonic()
    time.sleep(_IDLE_SECONDS)
    took = time.monotonic() - began
    return {f"{name}_idle_percent": 100 * (cpu_seconds(pid) - before[name]) / took for name, pid in pids.items()}


def _panels(found: Mapping[int, Mapping[str, float]]) -> list[Panel]:
    """Time and memory over the number of workers."""
    times = {"workers are complete": "complete_s", "all commands run": "sessions_up_s"}
    memory = {"switchboard": "switchboard_mb", "agents": "agents_mb", "controller": "controller_mb"}
    # Of a few commands nothing is seen beside what else comes and goes.
    for_commands = [
        (count, megabytes)
        for count, each in found.items()
        if (megabytes := each["apiserver_mb_per_session"] * count) > 0
    ]

    def curves(of: Mapping[str, str]) -> dict[str, list[tuple[float, float]]]:
        return {name: [(count, each[key]) for count, each in found.items()] for name, key in of.items()}

    return [
        Panel("seconds", curves(times)),
        Panel("MB", {**({"API server, for them": for_commands} if for_commands else {}), **curves(memory)}),
    ]
