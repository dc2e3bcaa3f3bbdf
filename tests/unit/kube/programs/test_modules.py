"""What is built, and that go.mod and go.sum hold all of it."""

from __future__ import annotations

import re

import pytest

from testbed.kube.errors import ClusterError
from testbed.kube.programs import modules

EVERY_MINOR = modules.minors()

_REQUIRED = r"^\s*(?:require )?([a-z]\S*\.\S+) (v\S+)(?: // indirect)?$"


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
def test_a_minor_is_built_from_its_own_release_and_nothing_else(minor: str) -> None:
    module = modules.kubernetes(minor)

    patch = module.version.rpartition(".")[2]
    staging = set(re.findall(r"^\tk8s\.io/\S+ => k8s\.io/\S+ (v\S+)$", module.mod, re.MULTILINE))

    assert module.version == f"{minor}.{patch}"
    assert staging == {f"v0.{minor.removeprefix('1.')}.{patch}"}


@pytest.mark.parametrize("minor", EVERY_MINOR)
def test_every_program_of_kubernetes_is_built(minor: str) -> None:
    programs = re.findall(r"^\tk8s\.io/kubernetes/cmd/(\S+)$", modules.kubernetes(minor).mod, re.MULTILINE)

    assert programs == [
        "kube-apiserver",
        "kube-controller-manager",
        "kube-proxy",
        "kube-scheduler",
        "kubectl",
        "kubelet",
    ]


@pytest.mark.parametrize("minor", EVERY_MINOR)
def test_kubernetes_knows_its_version(minor: str) -> None:
    module = modules.kubernetes(minor)

    assert module.stamps == {
        "k8s.io/component-base/version.gitVersion": f"v{module.version}",
        "k8s.io/component-base/version.gitMajor": "1",
        "k8s.io/component-base/version.gitMinor": minor.removeprefix("1."),
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
