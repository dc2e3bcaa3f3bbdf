"""
A tenant who may do anything in his own namespace, and wishes the controller ill.

Owns: his moves, and in what order they come. Who plays never looks at what his moves have led to, so that a seed
gives the same requests, while what they meet differs from run to run.
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import object_name, worker_name
from tests.api import hostile_objects as hostile
from tests.api.hostile_objects import HUGE, JOB_KINDS, Body
from tests.api.straight import MERGE, Straight
from tests.support.trainings import scaler

_PLACES: Mapping[str, str] = {
    **JOB_KINDS,
    "MPIJob v1": "/apis/kubeflow.org/v1 mpijobs",
    "ScaleIn": "/apis/kai.alibabacloud.com/v1alpha1 scaleins",
    "ScaleOut": "/apis/kai.alibabacloud.com/v1alpha1 scaleouts",
    kinds.CONFIG_MAP: "/api/v1 configmaps",
    kinds.SERVICE_ACCOUNT: "/api/v1 serviceaccounts",
    kinds.SERVICE: "/api/v1 services",
    kinds.POD: "/api/v1 pods",
    kinds.ROLE: "/apis/rbac.authorization.k8s.io/v1 roles",
    kinds.ROLE_BINDING: "/apis/rbac.authorization.k8s.io/v1 rolebindings",
    kinds.STATEFUL_SET: "/apis/apps/v1 statefulsets",
    kinds.JOB: "/apis/batch/v1 jobs",
    "Event": "/api/v1 events",
}
_OURS = (
    kinds.CONFIG_MAP, kinds.SERVICE_ACCOUNT, kinds.SERVICE, kinds.ROLE, kinds.ROLE_BINDING, kinds.STATEFUL_SET,
    kinds.JOB,
)  # fmt: skip
_EDITS: Mapping[str, tuple[Body, ...]] = {
    kinds.CONFIG_MAP: ({"data": None}, {"data": {"hostfile": "x" * 100_000}}),
    kinds.SERVICE: ({"spec": {"selector": {"x": "y"}}}, {"metadata": {"labels": None}}),
    kinds.ROLE: ({"rules": []}, {"metadata": {"annotations": {"x": "y" * 200_000}}}),
    kinds.ROLE_BINDING: ({"subjects": []},),
    kinds.SERVICE_ACCOUNT: ({"metadata": {"ownerReferences": None}},),
    kinds.STATEFUL_SET: (
        {"spec": {"replicas": 0}},
        {"spec": {"replicas": HUGE}},
        {"metadata": {"ownerReferences": None}},
        {"metadata": {"annotations": {"mpirt.dev/generation": "9" * 5000, "mpirt.dev/template": "x"}}},
        {"spec": {"template": {"metadata": {"labels": {"x": "y"}}}}},
    ),
    kinds.JOB: (
        {"spec": {"suspend": True}},
        {"spec": {"parallelism": 50}},
        {"metadata": {"labels": None}},
        {"metadata": {"annotations": None, "finalizers": ["example.com/never"]}},
    ),
}
# He comes back to the same few jobs: what he does to one meets what he has done to it before.
_NAMES = 4
SILENT = "silent"
"""The TrainingJob whose workers never answer."""


@dataclass
class Adversary:
    """One of them; `others` is the uid of a job that is none of his, `rate` his requests in a second."""

    way: Straight
    namespace: str
    chance: Random
    others: str
    rate: float
    crowd: int
    """How many objects he makes when he makes many."""
    silent: Body
    """What of a pod's spec puts it where no command is ever answered."""
    answers: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    """What the API server has answered to each move; 0: nothing."""
    squatted: dict[str, Body] = field(default_factory=dict)
    """What he has put where an object of a job would be, by its path: they have to stay unchanged."""
    _move: str = ""
    _next: float = 0.0

    def play(self, moves: int) -> Iterator[str]:
        """Make so many moves, each once before any comes twice; their names, each before it is made."""
        deck: list[str] = []
        for _ in range(moves):
            deck = deck or self.chance.sample(list(MOVES), len(MOVES))
            self._move = deck.pop()
            yield self._move
            MOVES[self._move](self)

    def open(self) -> None:
        """Make the jobs that his moves are about. They begin when SILENT runs."""
        self._move = "opening"
        for kind in JOB_KINDS:
            for number in range(_NAMES):
                self.create(kind, hostile.job(kind, _name(kind, number)))
        silent = hostile.job("TrainingJob", SILENT, workers=8)
        silent["spec"]["etReplicaSpecs"]["worker"]["template"]["spec"] |= self.silent
        self.create("TrainingJob", silent)

    def leave(self) -> None:
        """Have all his jobs go."""
        self._move = "leave"
        for kind in (*JOB_KINDS, "ScaleIn", "ScaleOut"):
            self.send("DELETE", self.path(kind))

    # -- requests -------------------------------------------------------------------------------------------------

    def path(self, kind: str, name: str = "", part: str = "") -> str:
        group, plural = _PLACES[kind].split()
        return f"{group}/namespaces/{self.namespace}/{plural}" + "".join(
            f"/{word}" for word in (name, part) if word
        )

    def send(self, method: str, path: str, body: Body | str | None = None) -> int:
        """Send a request, not too soon after the one before; its status."""
        now = time.monotonic()
        # The schedule's own time: what is measured is the controller, and not how much the API server bears.
        time.sleep(max(0.0, self._next - now))
        self._next = max(now, self._next) + 1 / self.rate
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        content = MERGE if method == "PATCH" else "application/json"
        try:
            status, _ = self.way.send(method, path, text, content=content)
        except OSError:
            # An API server that has had enough of it may hang up.
            status = 0
        self.answers[self._move][status] += 1
        return status

    def create(self, kind: str, body: Body | str) -> int:
        return self.send("POST", self.path(kind), body)

    def edit(self, kind: str, name: str, body: Body, part: str = "") -> int:
        return self.send("PATCH", self.path(kind, name, part), body)

    def delete(self, kind: str, name: str, how: str = "Background") -> int:
        self.squatted.pop(self.path(kind, name), None)
        return self.send("DELETE", self.path(kind, name), {"propagationPolicy": how})

    # -- choices --------------------------------------------------------------------------------------------------

    def kind(self) -> str:
        return self.chance.choice(list(JOB_KINDS))

    def name(self, kind: str) -> str:
        return _name(kind, self.chance.randrange(_NAMES))

    def uid_of(self, kind: str, name: str) -> str:
        """The uid of an object; another one's if it does not exist."""
        status, answer = self.way.send("GET", self.path(kind, name))
        return str(json.loads(answer)["metadata"]["uid"]) if status == 200 else self.others


def _name(kind: str, number: int) -> str:
    return f"{kind[0].lower()}{number}"


def huge_job(who: Adversary) -> None:
    name = who.name("MPIJob")
    who.delete("MPIJob", name)
    who.create("MPIJob", hostile.huge("MPIJob", name))


def huge_training(who: Adversary) -> None:
    name = who.name("TrainingJob")
    who.delete("TrainingJob", name)
    who.create("TrainingJob", hostile.huge("TrainingJob", name))


def flickering(who: Adversary) -> None:
    """Suspends and resumes a job, again and again."""
    name = who.name("MPIJob")
    for number in range(20):
        who.edit("MPIJob", name, {"spec": {"runPolicy": {"suspend": number % 2 == 0}}})


def absurd_numbers(who: Adversary) -> None:
    for _ in range(6):
        kind = who.kind()
        who.create(kind, hostile.absurd(who.chance, kind, f"absurd-{who.chance.randrange(10**6)}"))


def long_grace(who: Adversary) -> None:
    """Workers that may take for ever to end, and then have to."""
    name, body = f"grace-{who.chance.randrange(10**6)}", hostile.job("MPIJob", "")
    hostile.put(body, "metadata.name", name)
    hostile.put(body, "spec.mpiReplicaSpecs.Worker.template.spec.terminationGracePeriodSeconds", 9_000_000_000_000)
    who.create("MPIJob", body)
    who.edit("MPIJob", name, {"spec": {"runPolicy": {"suspend": True}}})


def deep_fields(who: Adversary) -> None:
    for _ in range(4):
        kind = who.kind()
        who.create(kind, hostile.deep(who.chance, kind, f"deep-{who.chance.randrange(10**6)}"))


def invalid_specs(who: Adversary) -> None:
    for _ in range(6):
        who.create("MPIJob", hostile.invalid(who.chance, f"invalid-{who.chance.randrange(10**6)}"))


def edits_of_ours(who: Adversary) -> None:
    job = who.name("MPIJob")
    for kind in who.chance.sample(_OURS, 4):
        who.edit(kind, object_name(kind, job), who.chance.choice(_EDITS[kind]))


def deletions_of_ours(who: Adversary) -> None:
    job = who.name("MPIJob")
    for kind in _OURS:
        who.delete(kind, object_name(kind, job), who.chance.choice(("Background", "Foreground", "Orphan")))


def false_status(who: Adversary) -> None:
    for _ in range(4):
        kind = who.kind()
        who.edit(kind, who.name(kind), hostile.status_lie(who.chance), "status")


def false_pod_status(who: Adversary) -> None:
    name = worker_name(who.name("MPIJob"), 0)
    for number in range(20):
        who.edit(kinds.POD, name, hostile.pod_lie(who.chance, number), "status")


def reborn(who: Adversary) -> None:
    """Deletes a job and makes it again at once."""
    kind = who.kind()
    name, body = who.name(kind), hostile.job(kind, "x")
    hostile.put(body, "metadata.name", name)
    for _ in range(6):
        who.create(kind, body)
        who.delete(kind, name, who.chance.choice(("Background", "Foreground", "Orphan")))
    who.create(kind, body)


def silent_workers(who: Adversary) -> None:
    """Asks for fewer of those workers that never answer whether they are in use."""
    for _ in range(4):
        name = f"silent-{who.chance.randrange(10**6)}"
        who.create("ScaleIn", scaler("ScaleIn", name, SILENT, {"toDelete": {"count": 5}}))


def rumours(who: Adversary) -> None:
    """Events that no controller of Kubernetes has written."""
    job = who.name("MPIJob")
    for number in range(who.crowd):
        who.create("Event", hostile.rumour(who.chance, number, job, who.namespace))


def config_maps(who: Adversary) -> None:
    job = who.name("MPIJob")
    for _ in range(who.crowd):
        name = f"crowd-{who.chance.randrange(10**9)}"
        who.create(kinds.CONFIG_MAP, hostile.config_map(name, job))


def pods(who: Adversary) -> None:
    job, role = who.name("MPIJob"), who.chance.choice(("worker", "launcher"))
    for _ in range(who.crowd):
        who.create(kinds.POD, hostile.pod(f"{job}-{role}-{who.chance.randrange(10**5)}", job, role))


def squatting(who: Adversary) -> None:
    """Objects without an owner, where those of his next job would be."""
    job = f"squat-{who.chance.randrange(10**6)}"
    for kind in (kinds.CONFIG_MAP, kinds.POD):
        name = worker_name(job, 0) if kind == kinds.POD else object_name(kind, job)
        body = hostile.pod(name, job, "worker") if kind == kinds.POD else hostile.config_map(name, job)
        if who.create(kind, body) == 201:
            who.squatted[who.path(kind, name)] = body
    who.create("MPIJob", hostile.job("MPIJob", job))


def false_owners(who: Adversary) -> None:
    """Objects that say they are another tenant's job's, another job's of his own, or of a launcher Job's."""
    job = who.name("MPIJob")
    launcher = object_name(kinds.JOB, job)
    mine = who.uid_of("MPIJob", job)
    owners = (
        hostile.owner("MPIJob", "victim-0", who.others),
        hostile.owner("MPIJob", job, mine),
        hostile.owner("Job", launcher, who.uid_of(kinds.JOB, launcher), "batch/v1"),
    )
    for number, one in enumerate(owners):
        suffix = who.chance.randrange(10**5)
        who.create(kinds.CONFIG_MAP, hostile.config_map(f"owned-{suffix}", "victim-0", [one]))
        who.create(kinds.POD, hostile.pod(f"{launcher}-{suffix}", job, "launcher", [one]))
        who.create(kinds.POD, hostile.pod(worker_name(job, number), job, "worker", [one]))


def run_again(who: Adversary) -> None:
    """Asks for another run, again and again, and says whatever annotations may say."""
    name = who.name("MPIJob")
    for number in range(10):
        lies = {"mpirt.dev/rerun": f"{number}", "mpirt.dev/rerun-when-deleted": "true", "mpirt.dev/history": "{"}
        who.edit("MPIJob", name, {"metadata": {"annotations": lies}})


def scalers(who: Adversary) -> None:
    """Too many changes of workers, of too many workers, of no job."""
    job = who.name("TrainingJob")
    wanted: tuple[Body, ...] = (
        {"toDelete": {"podNames": [f"{job}-worker-{number}" for number in range(5000)]}},
        {"toDelete": {"count": 2**31 - 1}},
        {"toAdd": {"count": 2**31 - 1}},
        {"toAdd": {"count": -1}},
        {"timeout": "9" * 3000},
    )
    for number in range(who.crowd):
        kind, spec = who.chance.choice(("ScaleIn", "ScaleOut")), who.chance.choice(wanted)
        of = who.chance.choice((job, job, "nobody"))
        who.create(kind, scaler(kind, f"scaler-{who.chance.randrange(10**9)}-{number}", of, spec))


def never_gone(who: Adversary) -> None:
    """A job that is deleted and stays, and objects of ours that do."""
    name = who.name("MPIJob")
    stays: dict[str, Any] = {"metadata": {"finalizers": ["example.com/never"]}}
    who.edit(kinds.STATEFUL_SET, object_name(kinds.STATEFUL_SET, name), stays)
    who.edit("MPIJob", name, stays)
    who.delete("MPIJob", name, "Foreground")


def long_names(who: Adversary) -> None:
    for length in (41, 63, 64, 253):
        kind = who.kind()
        who.create(kind, hostile.job(kind, "n" * length))


def old_version(who: Adversary) -> None:
    """The same job by both versions of its API, each of which keeps fields that the other has not."""
    name = who.name("MPIJob")
    body = hostile.job("MPIJob", name) | {"apiVersion": "kubeflow.org/v1"}
    who.create("MPIJob v1", body)
    for kind in ("MPIJob", "MPIJob v1") * 3:
        spec: Body = {"slotsPerWorker": who.chance.randint(1, 9), "cleanPodPolicy": "All", "mainContainer": "x"}
        who.edit(kind, name, {"spec": spec})


Move = Callable[[Adversary], None]

MOVES: Mapping[str, Move] = {
    move.__name__.replace("_", " "): move
    for move in (
        huge_job, huge_training, flickering, absurd_numbers, long_grace, deep_fields, invalid_specs,
        edits_of_ours, deletions_of_ours, false_status, false_pod_status, reborn, silent_workers, rumours,
        config_maps, pods, squatting, false_owners, run_again, scalers, never_gone, long_names, old_version,
    )
}  # fmt: skip
