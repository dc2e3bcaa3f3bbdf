"""
Putting archives into one node's containerd.

`ctr` runs containerd's client against that node, in the namespace that kubelet uses, and raises when it
fails. Nothing is kept here between calls, so several nodes can be loaded at once.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence

from testbed.kube.images.archive import Archive

Ctr = Callable[..., subprocess.CompletedProcess[str]]

_REGISTRY = "docker.io"


def load(archives: Sequence[Archive], ctr: Ctr) -> None:
    """Import what the node lacks, and remove what it has of former recipes."""
    present = images_in(ctr("images", "ls").stdout)
    lacking = [archive for archive in archives if not is_loaded(archive, present)]
    for archive in lacking:
        ctr("images", "import", str(archive.path))
    if lacking:
        present = images_in(ctr("images", "ls").stdout)
    former = former_references(archives, present)
    if former:
        ctr("images", "rm", *former)


def normalised(reference: str) -> str:
    """A reference as containerd keeps it: with its registry, a folder and a tag."""
    name, tag = _split(reference)
    first, slash, rest = name.partition("/")
    if not slash:
        return f"{_REGISTRY}/library/{first}:{tag}"
    if "." in first or ":" in first or first == "localhost":
        return f"{first}/{rest}:{tag}"
    return f"{_REGISTRY}/{name}:{tag}"


def images_in(listing: str) -> dict[str, str]:
    """The digest of each reference, from what `ctr images ls` prints: a heading, then REF TYPE DIGEST ..."""
    rows = [line.split() for line in listing.splitlines()[1:]]
    return {row[0]: row[2] for row in rows if len(row) > 2}


def is_loaded(archive: Archive, present: Mapping[str, str]) -> bool:
    """Are all names of the archive there, for one and the same image?"""
    digests = {present.get(normalised(reference)) for reference in archive.references}
    return len(digests) == 1 and None not in digests


def former_references(archives: Sequence[Archive], present: Mapping[str, str]) -> list[str]:
    """Names of former images of the archives, and kubelet's names for them, which are digests."""
    wanted = {normalised(reference) for archive in archives for reference in archive.references}
    names = {_split(reference)[0] for reference in wanted}
    former = {reference for reference in present if _split(reference)[0] in names} - wanted
    used = {digest for reference, digest in present.items() if not (reference in former or _is_digest(reference))}
    unused = {present[reference] for reference in former} - used
    return sorted(
        former | {reference for reference in present if _is_digest(reference) and present[reference] in unused}
    )


def _is_digest(reference: str) -> bool:
    return reference.startswith("sha256:")


def _split(reference: str) -> tuple[str, str]:
    """Name and tag; a colon before a slash belongs to a registry's port."""
    name, colon, tag = reference.rpartition(":")
    if not colon or "/" in tag:
        return reference, "latest"
    return name, tag
