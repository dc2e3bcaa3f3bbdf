"""
Kubernetes' own programs, and pause, built from Debian's source package with Debian's Go.

The recipe is data, and its key covers every word that is run: a change of a flag builds anew, a change of the
code around it doesn't. The modules of this source tree don't build; GOPATH mode does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.kube import aptroot, buildcache
from tests.kube.aptroot import AptRoot
from tests.kube.errors import ClusterError
from tests.kube.progress import step
from tests.kube.shell import run

VERSION = "1.20.2"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")
GO_CACHE = "go-cache"

_SOURCE_PACKAGE = "kubernetes"
_GO_PACKAGES = ("golang-1.19-go", "golang-1.19-src")
_GO_ROOT = "usr/lib/go-1.19"
_PAUSE = Path(__file__).parent / "pause" / "main.go"

_IMPORT_PATH = "k8s.io/kubernetes"
_TREE = f"go-path/src/{_IMPORT_PATH}"
_VENDOR = f"{_IMPORT_PATH}/vendor/k8s.io"

# A compiler that outlived a killed run would write into the folder of the next one: the first process of a pid
# namespace takes all others with it.
_ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child")

# No node here runs Docker or belongs to a cloud: what only they need is left out.
_TAGS = "providerless,dockerless"

# kube-apiserver needs one generated file that the source package lacks.
_OPENAPI_FOLDERS = ("pkg", "cmd", "staging/src")
_OPENAPI_TAG = "+k8s:openapi-gen="
_OPENAPI_NOT = ("code-generator", "sample-apiserver")
_OPENAPI_WORDS = (
    *("--output-file-base", "zz_generated.openapi"),
    *("--output-package", f"{_IMPORT_PATH}/pkg/generated/openapi"),
    *("--go-header-file", "vendor/k8s.io/code-generator/hack/boilerplate.go.txt"),
    *("--report-filename", "/dev/null"),
)

# Since Go 1.18 the caller of reflect.mapiterinit brings the iterator. The vendored reflect2 is older, and an API
# server that is built with it dies of the first custom resource. This is how reflect2 1.0.2 has it.
_REFLECT2 = "vendor/github.com/modern-go/reflect2"
_MENDED = (
    (
        f"{_REFLECT2}/unsafe_link.go",
        "func mapiterinit(rtype unsafe.Pointer, m unsafe.Pointer) *hiter",
        "func mapiterinit(rtype unsafe.Pointer, m unsafe.Pointer, it *hiter)",
    ),
    (
        f"{_REFLECT2}/unsafe_link.go",
        "\t// rest fields are ignored",
        (
            "\tt, h, buckets, bptr, overflow, oldoverflow unsafe.Pointer\n"
            "\tstartBucket uintptr\n\toffset, wrapped, b, i uint8\n\tbucket, checkBucket uintptr"
        ),
    ),
    (
        f"{_REFLECT2}/unsafe_map.go",
        "\treturn &UnsafeMapIterator{\n\t\thiter:      mapiterinit(type2.rtype, *(*unsafe.Pointer)(obj)),",
        (
            "\tvar it hiter\n\tmapiterinit(type2.rtype, *(*unsafe.Pointer)(obj), &it)\n"
            "\treturn &UnsafeMapIterator{\n\t\thiter:      &it,"
        ),
    ),
)


def key(machine: str) -> str:
    """The key of this recipe on a kind of machine, such as x86_64."""
    work = Path("/work")
    words = [generator_words(work), _OPENAPI_WORDS, programs_words(work), pause_words(work)]
    tags = [_OPENAPI_FOLDERS, _OPENAPI_TAG, _OPENAPI_NOT]
    return buildcache.key_of(
        machine, VERSION, _GO_PACKAGES, environment(work), words, tags, _MENDED, _PAUSE.read_text()
    )


def make(apt: AptRoot, work: Path) -> tuple[Path, dict[str, str]]:
    """Build in `work`, where Go's cache of an earlier try may be; return the made folder, and versions."""
    with step("fetching Go and the source of Kubernetes"):
        versions = _unpack_go(apt, work) | _unpack_source(apt, work)
    (work / "tmp").mkdir()
    (work / "made" / "bin").mkdir(parents=True)
    with step("building pause"):
        _go(work, *pause_words(work))
    with step("generating the OpenAPI definitions"):
        _go(work, *generator_words(work))
        packages = ",".join(openapi_packages(work / _TREE))
        _run(work, str(work / "openapi-gen"), *_OPENAPI_WORDS, "--input-dirs", packages)
    with step(f"building {', '.join(PROGRAMS)}"):
        _go(work, *programs_words(work))
    return work / "made", versions


def environment(work: Path) -> dict[str, str]:
    """What Go's behaviour depends on, whatever the caller's own Go is set to."""
    return {
        "CGO_ENABLED": "0",
        "GO111MODULE": "off",
        "GOCACHE": str(work / GO_CACHE),
        "GOENV": "off",
        "GOFLAGS": "",
        "GOPATH": str(work / "go-path"),
        "GOROOT": str(work / _GO_ROOT),
        "GOTMPDIR": str(work / "tmp"),
        "TMPDIR": str(work / "tmp"),
    }


def pause_words(work: Path) -> list[str]:
    """The words after `go` that build the program that holds a pod's namespaces."""
    return [
        "build",
        "-trimpath",
        "-ldflags",
        "-s -w",
        "-o",
        f"{work}/made/bin/pause",
        f"{work}/pause/main.go",
    ]


def generator_words(work: Path) -> list[str]:
    """The words after `go` that build the generator of the OpenAPI definitions."""
    return ["build", "-trimpath", "-o", f"{work}/openapi-gen", f"{_VENDOR}/kube-openapi/cmd/openapi-gen"]


def programs_words(work: Path) -> list[str]:
    """The words after `go` that build all programs; one call, so that no processor waits for a linker."""
    packages = [f"{_IMPORT_PATH}/cmd/{program}" for program in PROGRAMS]
    flags = ["-trimpath", "-tags", _TAGS, "-ldflags", " ".join(["-s", "-w", *_version_flags()])]
    return ["build", *flags, "-o", f"{work}/made/bin/", *packages]


def openapi_packages(tree: Path) -> list[str]:
    """The import paths of the packages that say they have OpenAPI definitions."""
    folders = {file.parent for file in _go_files(tree) if _OPENAPI_TAG.encode() in file.read_bytes()}
    places = sorted(folder.relative_to(tree).as_posix() for folder in folders)
    return [
        f"{_IMPORT_PATH}/{re.sub('^staging/src/', 'vendor/', place)}"
        for place in places
        if not any(word in place for word in _OPENAPI_NOT)
    ]


def is_source_of(debian_version: str, upstream: str) -> bool:
    """Does a Debian version, perhaps of the kind 1.20.5+really1.20.2-1, carry this upstream version?"""
    return debian_version.rpartition("-")[0].rpartition("really")[2] == upstream


def _version_flags() -> Iterator[str]:
    major, minor, _ = VERSION.split(".")
    values = {"gitVersion": f"v{VERSION}", "gitMajor": major, "gitMinor": minor}
    for package in ("component-base", "client-go/pkg"):
        for name, value in values.items():
            yield f"-X {_VENDOR}/{package}/version.{name}={value}"


def _go_files(tree: Path) -> Iterator[Path]:
    for folder in _OPENAPI_FOLDERS:
        yield from (tree / folder).rglob("*.go")


def _unpack_go(apt: AptRoot, work: Path) -> dict[str, str]:
    packages = aptroot.fetch(apt, _GO_PACKAGES, work / "packages")
    for package in packages:
        aptroot.unpack(package, work)
    return {"go": aptroot.version_of(packages[0])}


def _unpack_source(apt: AptRoot, work: Path) -> dict[str, str]:
    dsc = aptroot.fetch_source(apt, _SOURCE_PACKAGE, work / "packages")
    version = aptroot.source_version_of(dsc)
    if not is_source_of(version, VERSION):
        raise ClusterError(
            f"Debian's source package {_SOURCE_PACKAGE} is {version}, and the recipe is for {VERSION}",
            remedy=f"change VERSION in {__name__}, and try whether the recipe still fits",
        )
    (work / _TREE).parent.mkdir(parents=True)
    aptroot.unpack_source(dsc, work / _TREE)
    _mend(work / _TREE)
    (work / "pause").mkdir()
    (work / "pause" / _PAUSE.name).write_text(_PAUSE.read_text())
    return {_SOURCE_PACKAGE: version}


def _mend(tree: Path) -> None:
    for name, wrong, right in _MENDED:
        file = tree / name
        text = file.read_text()
        if text.count(wrong) != 1:
            raise ClusterError(f"{name} is not what the recipe mends", remedy=f"look at _MENDED in {__name__}")
        file.write_text(text.replace(wrong, right))


def _go(work: Path, *words: str) -> None:
    _run(work, str(work / _GO_ROOT / "bin" / "go"), *words)


def _run(work: Path, *argv: str) -> None:
    run(*_ENDS_WITH_US, *argv, cwd=work / _TREE, env=environment(work))
