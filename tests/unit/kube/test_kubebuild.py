"""The recipe of the Kubernetes build, as far as it is words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kube import kubebuild

WORK = Path("/cache/build")


def test_the_programs_are_built_static_and_with_their_version() -> None:
    words = kubebuild.programs_words(WORK)

    assert kubebuild.environment(WORK)["CGO_ENABLED"] == "0"
    assert "-X k8s.io/kubernetes/vendor/k8s.io/component-base/version.gitVersion=v1.20.2" in words[5]
    assert words[6:] == [
        "-o",
        "/cache/build/made/bin/",
        "k8s.io/kubernetes/cmd/kube-apiserver",
        "k8s.io/kubernetes/cmd/kube-controller-manager",
        "k8s.io/kubernetes/cmd/kube-scheduler",
        "k8s.io/kubernetes/cmd/kubelet",
        "k8s.io/kubernetes/cmd/kubectl",
    ]


def test_go_writes_into_the_work_folder_only() -> None:
    environment = kubebuild.environment(WORK)

    for name in ("GOCACHE", "GOPATH", "GOROOT", "GOTMPDIR", "TMPDIR"):
        assert Path(environment[name]).is_relative_to(WORK)


def test_the_key_does_not_depend_on_where_it_is_built_but_on_the_machine() -> None:
    assert kubebuild.key("x86_64") == kubebuild.key("x86_64")
    assert kubebuild.key("x86_64") != kubebuild.key("aarch64")


def test_packages_with_the_openapi_tag_are_found_by_their_import_paths(tmp_path: Path) -> None:
    tagged = "// +k8s:openapi-gen=true\npackage some\n"
    files = {
        "pkg/apis/core/types.go": tagged,
        "pkg/apis/batch/types.go": "package batch\n",
        "cmd/kubeadm/README.md": tagged,
        "staging/src/k8s.io/api/core/v1/doc.go": tagged,
        "staging/src/k8s.io/code-generator/example/doc.go": tagged,
        "staging/src/k8s.io/sample-apiserver/pkg/doc.go": tagged,
        "test/e2e/doc.go": tagged,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    assert kubebuild.openapi_packages(tmp_path) == [
        "k8s.io/kubernetes/pkg/apis/core",
        "k8s.io/kubernetes/vendor/k8s.io/api/core/v1",
    ]


@pytest.mark.parametrize(
    ("debian", "upstream", "same"),
    [
        ("1.20.5+really1.20.2-1.1+deb12u1", "1.20.2", True),
        ("1.20.2-1", "1.20.2", True),
        ("1.20.5+really1.20.2-1.1", "1.20.5", False),
        ("1.32.3+ds-2", "1.20.2", False),
    ],
)
def test_the_upstream_version_is_read_out_of_debians(debian: str, upstream: str, *, same: bool) -> None:
    assert kubebuild.is_source_of(debian, upstream) is same
