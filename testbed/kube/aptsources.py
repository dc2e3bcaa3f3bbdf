"""
Where bookworm comes from, worked out of what the host's own apt is configured with.

Pure: reads what `apt-get indextargets` printed, and writes a sources list. No mirror is named here, because
the host knows one that it can reach. Other vendors' archives use Debian's suite names too, so a name alone is
weak evidence; apt knows an archive's origin once it has its lists, and checks Debian's signature in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

SUITE = "bookworm"

# For `apt-get indextargets --format`; `parse_entries` reads it back.
FORMAT = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)"

_SUITES = frozenset(
    {
        *("oldoldstable", "oldstable", "stable", "testing", "unstable"),
        *("bullseye", "bookworm", "trixie", "forky", "duke", "sid"),
    }
)
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


@dataclass(frozen=True, slots=True)
class Entry:
    """One archive, suite and component of the host's apt; `origin` is empty when apt has no lists of it."""

    uri: str
    release: str
    component: str
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """One archive and suite of which the main component is used."""

    uri: str
    suite: str


def parse_entries(text: str) -> list[Entry]:
    """What the host's apt is configured with, each once and in its order."""
    entries: list[Entry] = []
    for line in text.splitlines():
        uri, release, component, origin = line.split("|")
        # apt leaves a field that it doesn't know as it stands in the format.
        entry = Entry(uri, release, component, "" if origin.startswith("$(") else origin)
        if entry not in entries:
            entries.append(entry)
    return entries


def bookworm_sources(entries: Sequence[Entry]) -> list[Source]:
    """Bookworm from the host's Debian archive, with updates where the host takes them; empty without one."""
    archives = sorted(filter(_is_debian_suite, entries), key=lambda entry: _doubts(entry, entries))
    if not archives:
        return []
    archive = archives[0]
    sources = [Source(archive.uri, SUITE)]
    if _updates_of(archive) in _places(entries):
        sources.append(Source(archive.uri, f"{SUITE}-updates"))
    security = [entry for entry in entries if _is_security(entry)]
    if security:
        sources.append(Source(security[0].uri, f"{SUITE}-security"))
    return sources


def of_suite(source: Source, suite: str) -> Source:
    """The same archive, of another suite than bookworm: every archive has them all."""
    return replace(source, suite=source.suite.replace(SUITE, suite, 1))


def sources_list(sources: Sequence[Source], architecture: str) -> str:
    """The text of a sources list that fetches the indexes of packages, and nothing else."""
    lines = []
    for source in sources:
        where = f"{source.uri} {source.suite} main"
        lines.append(f"deb [arch={architecture} target=Packages signed-by={_KEYRING}] {where}\n")
    return "".join(lines)


def _doubts(entry: Entry, entries: Sequence[Entry]) -> tuple[bool, bool, bool]:
    """What speaks against this being the host's Debian archive, the heaviest first."""
    return entry.origin == "", _updates_of(entry) not in _places(entries), entry.release != SUITE


def _is_debian_suite(entry: Entry) -> bool:
    if entry.component != "main" or entry.uri.startswith("cdrom:") or not _is_debians(entry):
        return False
    # An archive of known origin may carry the name of a suite that is not born yet.
    return entry.release in _SUITES or (entry.origin == "Debian" and "-" not in entry.release)


def _is_security(entry: Entry) -> bool:
    return entry.component == "main" and entry.release.endswith("-security") and _is_debians(entry)


def _is_debians(entry: Entry) -> bool:
    return entry.origin in {"Debian", ""}


def _updates_of(entry: Entry) -> tuple[str, str]:
    return entry.uri, f"{entry.release}-updates"


def _places(entries: Sequence[Entry]) -> set[tuple[str, str]]:
    return {(entry.uri, entry.release) for entry in entries if entry.component == "main"}
