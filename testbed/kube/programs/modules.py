"""
What is built: the folders of testbed/kube/modules, as values.

Each holds a go.mod, which names the programs and their version, and a go.sum with the hash of every module, so
that what is built is what was checked in. Reads these folders; builds and fetches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from testbed.kube.errors import ClusterError

FOLDER = Path(__file__).parents[1] / "modules"

# Below FOLDER: what runs beside the cluster in some tests, and is no part of it.
NEIGHBOURS = "neighbours"

_KUBERNETES = "kubernetes-"

# What is built carries the version of this module, by the kind of the folder.
_VERSIONED = {
    "cni": "github.com/containernetworking/plugins",
    "containerd": "github.com/containerd/containerd/v2",
    "coredns": "github.com/coredns/coredns",
    "etcd": "go.etcd.io/etcd/server/v3",
    "jobset": "sigs.k8s.io/jobset",
    "kube-router": "github.com/cloudnativelabs/kube-router/v2",
    "kubernetes": "k8s.io/kubernetes",
    "kueue": "sigs.k8s.io/kueue",
    "kwok": "sigs.k8s.io/kwok",
    "mpi-operator": "github.com/kubeflow/mpi-operator",
    "scheduler-plugins": "sigs.k8s.io/scheduler-plugins",
    "trainer": "github.com/kubeflow/trainer/v2",
}

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Module:
    """One Go module, by the text of its files: `mod` is that of go.mod, `sources` those of programs of ours."""

    name: str
    folder: Path
    mod: str
    sums: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def package(self) -> str:
        """What `go build` is asked for: all tools that go.mod names, or the program that lies in the folder."""
        return "." if self.sources else "tool"

    @property
    def path(self) -> str:
        """The module that gives its version to what is built; a program of ours has none."""
        return _VERSIONED.get(self.kind, "")

    @property
    def version(self) -> str:
        """The version of what is built; empty for a program of ours."""
        return _field(self.mod, rf"^\s*(?:require )?{re.escape(self.path)} v(\S+)") if self.path else ""

    @property
    def kind(self) -> str:
        """Its name; of Kubernetes, of which there are several, without the version."""
        return "kubernetes" if self.name.startswith(_KUBERNETES) else self.name

    @property
    def stamps(self) -> Mapping[str, str]:
        """The variables that a linker sets so that the programs know their version."""
        if self.kind == "kubernetes":
            major, minor, _ = self.version.split(".")
            values = {"gitVersion": f"v{self.version}", "gitMajor": major, "gitMinor": minor}
            return {f"k8s.io/component-base/version.{name}": value for name, value in values.items()}
        if self.kind == "containerd":
            return {f"{_VERSIONED[self.kind]}/version.Version": self.version}
        return {}

    @property
    def go(self) -> Version:
        """The oldest Go that builds it."""
        return parse_version(_field(self.mod, r"^go (\S+)$"))


def read(folder: Path) -> Module:
    """The module in a folder; one without dependencies has no go.sum."""
    sums = folder / "go.sum"
    return Module(
        name=folder.name,
        folder=folder,
        mod=(folder / "go.mod").read_text(),
        sums=sums.read_text() if sums.exists() else "",
        sources={file.name: file.read_text() for file in sorted(folder.glob("*.go"))},
    )


def minors(folder: Path = FOLDER) -> list[str]:
    """The minor versions of Kubernetes that can be built, the oldest first."""
    names = (entry.name.removeprefix(_KUBERNETES) for entry in folder.glob(f"{_KUBERNETES}*"))
    return sorted(names, key=parse_version)


def newest() -> str:
    return minors()[-1]


def kubernetes(minor: str) -> Module:
    """The module of one minor version of Kubernetes, such as 1.37."""
    known = minors()
    if minor not in known:
        raise ClusterError(
            f"Kubernetes {minor} is not one of the versions that the test cluster can run",
            remedy=f"name one of {', '.join(known)}",
        )
    return read(FOLDER / f"{_KUBERNETES}{minor}")


def others() -> Iterator[Module]:
    """Everything of the cluster but Kubernetes itself."""
    for folder in sorted(FOLDER.iterdir()):
        if folder.is_dir() and folder.name != NEIGHBOURS and not folder.name.startswith(_KUBERNETES):
            yield read(folder)


def parse_version(text: str) -> Version:
    """1.26.6 as numbers; what follows them, as in 1.27rc1, does not count."""
    found = re.match(r"\d+(?:\.\d+)*", text)
    if found is None:
        raise ValueError(f"no version: {text!r}")
    return tuple(int(part) for part in found[0].split("."))


def _field(text: str, pattern: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise ValueError(f"no line matches {pattern!r}")
    return found[1]
