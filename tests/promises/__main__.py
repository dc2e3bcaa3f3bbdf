"""Writes docs/promises.md, and prints how many promises there are."""

from __future__ import annotations

import sys
from collections import Counter

from tests.promises.finder import Tier, all_proofs
from tests.promises.page import ON_KUBERNETES, PAGE, broken, by_promise, page


def main() -> int:
    proofs = all_proofs()
    PAGE.write_text(page(proofs), encoding="utf-8")
    promises = by_promise(proofs)
    merged = {words: {one.layer for one in proven if one.tier is Tier.MERGE} for words, proven in promises.items()}
    layers = Counter(layer for layers in merged.values() for layer in layers)
    on_kubernetes = sum(not layers.isdisjoint(ON_KUBERNETES) for layers in merged.values())
    print(f"{len(promises)} promises, {on_kubernetes} of them proved on Kubernetes; by layer: {dict(layers)}")
    problems = broken(proofs)
    print(*problems, sep="\n", end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
