"""What git says of the checkout. Without git, or outside of a checkout, nothing is known, and that is no error."""

from __future__ import annotations

import subprocess

UNKNOWN = "unknown"


def head() -> str:
    """The commit that is checked out."""
    return _git("rev-parse", "HEAD").strip() or UNKNOWN


def changed_since(commit: str) -> list[str]:
    """The files that differ from a commit, committed or not; all files if the commit is unknown."""
    if not commit or not _git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"):
        return _git("ls-files").splitlines() or ["Makefile"]
    return _git("diff", "--name-only", commit).splitlines()


def count_since(commit: str) -> int:
    """How many commits there are since one; since the first if it is unknown."""
    found = _git("rev-list", "--count", f"{commit}..HEAD") if commit else ""
    return int(found or _git("rev-list", "--count", "HEAD") or 0)


def _git(*words: str) -> str:
    try:
        return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
