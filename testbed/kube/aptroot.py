"""
Debian packages, of bookworm where nothing else is said, for the tests' own use: fetched with apt's checks,
unpacked, never installed.

Installing etcd or containerd would start services, and clash with a Docker that the host runs. So apt gets a
state of its own: lists, sources, no preferences, and no installed packages, which could otherwise stand above
the suite's. Proxies and other ways of transport stay as the host's apt has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.kube import aptsources
from testbed.kube.aptsources import Entry, Source
from testbed.kube.errors import ClusterError
from testbed.kube.shell import output, run

NO_SOURCE_REMEDY = (
    "add a Debian mirror to apt's sources (deb URI bookworm main), run apt-get update, and start again"
)


@dataclass(frozen=True, slots=True)
class AptRoot:
    """An apt state of our own that knows what a suite has."""

    folder: Path
    sources: Sequence[Source]

    @property
    def configuration(self) -> Path:
        return self.folder / "apt.conf"

    @property
    def remedy(self) -> str:
        where = ", ".join(sorted({source.uri for source in self.sources}))
        suite = self.sources[0].suite
        return f"check the network and the proxy, and that {where} carries {suite}; then run again"


def host_entries() -> list[Entry]:
    """The archives that the host's own apt is configured with."""
    return aptsources.parse_entries(output("apt-get", "indextargets", "--format", aptsources.FORMAT))


def prepare(folder: Path, suite: str = aptsources.SUITE) -> AptRoot:
    """An apt state in `folder` with the lists of a suite, fetched from the host's own mirror."""
    entries = host_entries()
    sources = [aptsources.of_suite(source, suite) for source in aptsources.bookworm_sources(entries)]
    if not sources:
        raise ClusterError(no_source(entries), remedy=NO_SOURCE_REMEDY)
    root = AptRoot(folder.resolve(), tuple(sources))
    for name in ("lists/partial", "archives/partial"):
        (root.folder / name).mkdir(parents=True, exist_ok=True)
    architecture = output("dpkg", "--print-architecture")
    (root.folder / "sources.list").write_text(aptsources.sources_list(sources, architecture))
    (root.folder / "status").touch()
    root.configuration.write_text(configuration(root.folder))
    _apt(root, "update")
    return root


def fetch(root: AptRoot, names: Sequence[str], into: Path) -> list[Path]:
    """Download packages, without those that they depend on, and return their files."""
    into.mkdir(parents=True, exist_ok=True)
    _apt(root, "download", *names, cwd=into)
    return sorted(into.glob("*.deb"))


def unpack(package: Path, folder: Path) -> None:
    """Put a package's files under `folder` as if that were the root; its scripts don't run."""
    run("dpkg-deb", "--extract", package, folder)


def version_of(package: Path) -> str:
    """The version of a downloaded package."""
    return output("dpkg-deb", "--field", package, "Version")


def configuration(folder: Path) -> str:
    """The text of an apt configuration that keeps to `folder`, on top of the host's."""
    return f"""\
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Default-Release;
Dir::Etc::sourcelist "{folder}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State::lists "{folder}/lists";
Dir::State::status "{folder}/status";
Dir::Cache::archives "{folder}/archives";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
APT::Update::Error-Mode "any";
APT::Sandbox::User "root";
Acquire::Retries "3";
"""


def no_source(entries: Sequence[Entry]) -> str:
    """The sentence for a host whose apt has no Debian archive."""
    known = ", ".join(f"{entry.uri} {entry.release} {entry.component}" for entry in entries)
    return f"apt is configured without a Debian archive (it has: {known or 'nothing'})"


def _apt(root: AptRoot, *words: str, cwd: Path | None = None) -> None:
    try:
        run("apt-get", f"--config-file={root.configuration}", "-qq", *words, cwd=cwd)
    except ClusterError as error:
        raise ClusterError(error.what, remedy=root.remedy) from error
