"""
One Go module built into a folder of the cache.

The key of the folder covers all that is built and every word that is run: a change of a flag builds anew, a change
of the code around it doesn't. Proxies and checksum databases are the ones that the host's Go is set to use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from testbed.kube import buildcache
from testbed.kube.errors import ClusterError
from testbed.kube.programs.modules import Module
from testbed.kube.progress import step
from testbed.kube.shell import run

# Everything that Go itself keeps while it builds; a killed build goes on where it was.
GO_FOLDER = "work-go"

# A compiler that outlived a killed run would write into the folder of the next one: the first process of a pid
# namespace takes all others with it.
_ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child")

# No node here needs them, and they need C libraries.
_TAGS = "no_btrfs,no_devmapper,no_zfs"

_NETWORK_REMEDY = "check the network and GOPROXY (go env GOPROXY); then run again, it goes on with what is missing"


def final_folder(module: Module, cache: Path, machine: str) -> Path:
    """Where the module's programs are when they are built."""
    words = build_words(module, Path("/out"))
    key = buildcache.key_of(machine, module.mod, module.sums, module.sources, words, environment(Path("/cache")))
    return cache / "-".join(part for part in (module.kind, module.version, key) if part)


def make(module: Module, go: Path, final: Path, *, also: Callable[[Path], None] = lambda _made: None) -> None:
    """Fetch what the module needs, build its programs and publish them, with what `also` adds to their folder."""
    cache = final.parent
    work = final.with_name(f"work-{final.name}")
    buildcache.empty(work)
    (cache / GO_FOLDER / "tmp").mkdir(parents=True, exist_ok=True)
    label = f"{module.kind} {module.version}".strip()
    with step(f"fetching the source of {label}"):
        _fetch(module, go, cache)
    with step(f"building {label}"):
        _go(go, build_words(module, work / "made/bin"), module, cache)
    also(work / "made")
    buildcache.publish(work / "made", final, {module.kind: module.version} if module.version else {})


def environment(cache: Path) -> dict[str, str]:
    """What the build depends on, whatever the caller's own Go is set to."""
    return {
        "CGO_ENABLED": "0",
        "GO111MODULE": "on",
        "GOCACHE": str(cache / GO_FOLDER / "build"),
        "GOFLAGS": "-mod=readonly -modcacherw -buildvcs=false",
        "GOMODCACHE": str(cache / GO_FOLDER / "modules"),
        "GOTMPDIR": str(cache / GO_FOLDER / "tmp"),
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }


def build_words(module: Module, into: Path) -> list[str]:
    """The words after `go`. All programs in one call, so that no processor waits for a linker."""
    flags = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in module.stamps.items())])
    return ["build", "-trimpath", "-tags", _TAGS, "-ldflags", flags, "-o", f"{into}/", module.package]


def fetch_problem(label: str, said: str) -> ClusterError:
    """The error for a source that could not be fetched, by what Go said at the end."""
    last = next((line for line in reversed(said.splitlines()) if line.strip()), "no word of Go").strip()
    if "checksum mismatch" in said:
        return ClusterError(
            f"the source of {label} is not what go.sum says: checksum mismatch",
            remedy="do not build it; ask who runs the Go proxy that served it (go env GOPROXY)",
        )
    return ClusterError(f"the source of {label} could not be fetched: {last}", remedy=_NETWORK_REMEDY)


def _fetch(module: Module, go: Path, cache: Path) -> None:
    words = ["list", "-tags", _TAGS, "-deps", "-f", "{{with .Error}}{{.}}{{end}}", module.package]
    done = run(*_ENDS_WITH_US, go, *words, cwd=module.folder, env=environment(cache), check=False)
    if done.returncode != 0:
        raise fetch_problem(f"{module.kind} {module.version}".strip(), done.stderr)


def _go(go: Path, words: Sequence[str], module: Module, cache: Path) -> None:
    run(*_ENDS_WITH_US, go, *words, cwd=module.folder, env=environment(cache))
