"""The cluster's programs: their Go modules, their builds, and where they are kept."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.kube.errors import ClusterError
from testbed.kube.programs import modules
from testbed.kube.programs.binaries import naming_others
from testbed.kube.programs.gobuild import fetch_problem, final_folder
from testbed.kube.programs.golang import is_enough
from testbed.kube.programs.modules import Module

EVERY_MINOR = modules.minors()


def test_the_minors_are_those_that_people_run() -> None:
    assert modules.minors() == ["1.34", "1.35", "1.36", "1.37"]
    assert modules.newest() == "1.37"


@pytest.mark.parametrize("name", ["1.20", "1.37.2", "v1.37", "newest", "", "../etcd"])
def test_an_unknown_version_of_kubernetes_is_refused_with_those_that_work(name: str) -> None:
    with pytest.raises(ClusterError) as refused:
        modules.kubernetes(name)

    assert str(refused.value) == (
        f"Kubernetes {name} is not one of the versions that the test cluster can run\n"
        "  name one of 1.34, 1.35, 1.36, 1.37"
    )


@pytest.mark.parametrize("minor", EVERY_MINOR)
def test_a_minor_is_built_from_its_own_release_with_every_program_and_knows_its_version(minor: str) -> None:
    module = modules.kubernetes(minor)

    patch, number = module.version.rpartition(".")[2], minor.removeprefix("1.")
    staging = set(re.findall(r"^\tk8s\.io/\S+ => k8s\.io/\S+ (v\S+)$", module.mod, re.MULTILINE))
    programs = re.findall(r"^\tk8s\.io/kubernetes/cmd/(\S+)$", module.mod, re.MULTILINE)
    kube = [f"kube-{name}" for name in ("apiserver", "controller-manager", "proxy", "scheduler")]
    assert (module.version, staging) == (f"{minor}.{patch}", {f"v0.{number}.{patch}"})
    assert programs == [*kube, "kubectl", "kubelet"]
    assert module.stamps == {
        "k8s.io/component-base/version.gitVersion": f"v{module.version}",
        "k8s.io/component-base/version.gitMajor": "1",
        "k8s.io/component-base/version.gitMinor": number,
    }


def test_every_module_that_is_required_has_its_hash() -> None:
    for module in [*map(modules.kubernetes, EVERY_MINOR), *modules.others()]:
        replaced = set(re.findall(r"^\t(\S+) => ", module.mod, re.MULTILINE))
        required = re.findall(
            r"^\s*(?:require )?([a-z]\S*\.\S+) (v\S+)(?: // indirect)?$", module.mod, re.MULTILINE
        )
        missing = [
            name
            for name, version in required
            if name not in replaced and f"{name} {version}/go.mod h1:" not in module.sums
        ]

        assert missing == [], module.name


def test_a_program_of_ours_is_built_from_its_folder() -> None:
    packages = {module.kind: module.package for module in modules.others()}

    assert (packages["pause"], packages["coredns"]) == (".", ".")
    assert (packages["etcd"], packages["containerd"], packages["cni"]) == ("tool", "tool", "tool")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("1.26.6", (1, 26, 6)), ("1.27", (1, 27)), ("1.27rc1", (1, 27)), ("1.26.8 X:loopvar", (1, 26, 8))],
)
def test_a_version_is_read_as_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert modules.parse_version(text) == numbers


ETCD = Module(
    name="etcd",
    folder=Path("/modules/etcd"),
    mod="module m\n\ngo 1.26.0\n\ntool go.etcd.io/etcd/server/v3\n\nrequire go.etcd.io/etcd/server/v3 v3.7.3\n",
    sums="go.etcd.io/etcd/server/v3 v3.7.3 h1:x=\n",
)


def test_a_folder_is_named_after_what_is_built_and_its_key_wherever_the_checkout_is() -> None:
    moved = replace(ETCD, folder=Path("/elsewhere/etcd"))

    folder = final_folder(ETCD, Path("/cache"), "x86_64")

    assert folder.name.startswith("etcd-3.7.3-")
    assert final_folder(moved, Path("/cache"), "x86_64") == folder


@pytest.mark.parametrize(
    "other",
    [
        replace(ETCD, mod=ETCD.mod + "\n"),
        replace(ETCD, sums=""),
        replace(ETCD, sources={"main.go": "package main"}),
    ],
    ids=["another go.mod", "another go.sum", "a program of ours"],
)
def test_another_source_is_another_folder(other: Module) -> None:
    assert final_folder(other, Path("/cache"), "x86_64") != final_folder(ETCD, Path("/cache"), "x86_64")


@pytest.mark.parametrize(
    ("said", "what", "remedy"),
    [
        pytest.param(
            "verifying go.etcd.io/bbolt@v1.4.3: checksum mismatch\n\tdownloaded: h1:a\n\tgo.sum: h1:b\n",
            "is not what go.sum says: checksum mismatch",
            "do not build it; ask who runs the Go proxy that served it (go env GOPROXY)",
            id="another hash",
        ),
        pytest.param(
            'go: downloading x\ngo: x@v1: Get "https://proxy/x/@v/v1.zip": dial tcp: connection refused\n',
            'could not be fetched: go: x@v1: Get "https://proxy/x/@v/v1.zip": dial tcp: connection refused',
            "check the network and GOPROXY (go env GOPROXY); then run again, it goes on with what is missing",
            id="a proxy out of reach",
        ),
    ],
)
def test_a_source_that_can_not_be_had_is_named_with_the_remedy(said: str, what: str, remedy: str) -> None:
    error = fetch_problem("etcd 3.7.3", said)

    assert (error.what, error.remedy) == (f"the source of etcd 3.7.3 {what}", remedy)


@pytest.mark.parametrize(
    ("says", "enough"),
    [
        *((says, True) for says in ("go1.26.6", "go1.26.8", "go1.27", "go2.0", "go1.26.6-X:jsonv2")),
        *((says, False) for says in ("go1.19", "go1.26", "go1.26.5", "devel +abc", "")),
    ],
)
def test_this_go_or_a_later_one_is_used(says: str, *, enough: bool) -> None:
    assert is_enough(says, (1, 26, 6)) == enough


UNREACHABLE = ClusterError("the source of kubernetes 1.35.4 could not be fetched", remedy="check the network")


def test_versions_that_were_made_before_are_named_where_there_are_any() -> None:
    error = naming_others(UNREACHABLE, ["1.34", "1.37"])

    assert error.what == UNREACHABLE.what
    assert error.remedy == "check the network; --kubernetes 1.34 or 1.37 works without it"
    assert naming_others(UNREACHABLE, []) is UNREACHABLE
