"""Where the marks and the page are."""

from __future__ import annotations

from pathlib import Path

from tests.promises.finder import Proof, proofs

PROJECT = Path(__file__).resolve().parents[2]
PAGE = PROJECT / "docs/promises.md"


def all_proofs() -> list[Proof]:
    """What all tests prove, read from their sources."""
    return [
        proof
        for path in sorted((PROJECT / "tests").rglob("test_*.py"))
        for proof in proofs(path.relative_to(PROJECT).as_posix(), path.read_text(encoding="utf-8"))
    ]
