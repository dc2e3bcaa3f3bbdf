"""
docs/promises.md, made of the proofs, and the rules for promises and their proofs.

Reads and writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import get_args

from tests.promises import Subject
from tests.promises.finder import PROJECT, Proof, Tier

PAGE = PROJECT / "docs/promises.md"
COMMAND = ".venv/bin/python -m tests.promises"

_HEAD = f"""\
# Promises

What README and these pages promise, and the tests that prove it. This page is generated: a test that proves a
promise has the mark `promise` (`tests/promises`), and `{COMMAND}` writes the page.
`tests/unit/test_promises.py` fails if they differ, or if a promise has no proof in the merge tier, which every
change must pass.

- `e2e` is a cluster with nodes, `api` a real API server, scheduler and controller manager without nodes.
- A promise that only `unit` or `protocol` proves needs no cluster, or is about what a cluster does not do on
  demand; the table says which.
- A test of the tier `full` is an additional proof, which not every change has to pass
  ([CONTRIBUTING.md](../CONTRIBUTING.md#tiers)).
"""

_TITLES: Mapping[str, str] = {
    "mpirt-rsh": "mpirt-rsh: commands in workers",
    "mpirt-discover": "mpirt-discover: the hosts of a job",
    "MPIJob": "MPIJob",
    "TrainingJob": "TrainingJob, ScaleIn, ScaleOut and elastic Horovod",
    "GPUTask": "GPUTask",
    "mpirt-controller": "mpirt-controller",
    "mpirt": "mpirt: the command line",
    "installation": "Images, installation and examples",
    "safety": "Safety",
    "neighbours": "Neighbours",
}

LONGEST = 100
SUBJECTS: Sequence[str] = get_args(Subject)
ON_KUBERNETES = ("e2e", "api")

# It begins with a capital letter, or with what is typed.
_SENTENCE = re.compile(r"(?:[A-Z]|mpirt|mpirun|kubectl|horovodrun|make )[^|\n]*[^\s.|]\.")


def page(proofs: Sequence[Proof]) -> str:
    """The whole page."""
    return "\n".join([_HEAD, *_sections(by_promise(proofs))])


def _sections(promises: Mapping[str, Sequence[Proof]]) -> Iterator[str]:
    for subject, group in groupby(promises.items(), key=lambda item: item[1][0].subject):
        yield f"## {_TITLES.get(subject, subject)}\n\n| promise | layer | tier | test |\n|---|---|---|---|"
        yield "".join(_rows(words, proven) for words, proven in group)


def _rows(words: str, proven: Sequence[Proof]) -> str:
    """One for each test; the words stand in the first."""
    lines = [
        f"| {'' if number else words} | {_layer(proof)} | {proof.tier.value} | {_link(proof)} |\n"
        for number, proof in enumerate(proven)
    ]
    return "".join(lines)


def _layer(proof: Proof) -> str:
    return f"{proof.layer}: {proof.no_cluster}" if proof.no_cluster else proof.layer


def _link(proof: Proof) -> str:
    name = proof.file.split("/", 2)[2]
    return f"[{name}](../{proof.file}){f' {proof.test}' if proof.test else ''}"


def by_promise(proofs: Sequence[Proof]) -> dict[str, list[Proof]]:
    """The promises, each with its proofs, in the order of the page: by subject, then by their first tests."""
    found: dict[str, list[Proof]] = {}
    for proof in sorted(proofs, key=_place):
        found.setdefault(proof.words, []).append(proof)
    return found


def broken(proofs: Sequence[Proof]) -> list[str]:
    """One line for each rule that a promise breaks."""
    promises = by_promise(proofs)
    found = [f"{words!r}: {problem}" for words, proven in promises.items() for problem in _problems(words, proven)]
    return found + _spelled_differently(promises)


def _problems(words: str, proven: Sequence[Proof]) -> list[str]:
    found = []
    if len(words) > LONGEST:
        found.append(f"{len(words)} characters, at most {LONGEST}")
    if not _SENTENCE.fullmatch(words) or "  " in words:
        found.append("not a sentence")
    subjects = {proof.subject for proof in proven}
    if len(subjects) > 1 or not subjects <= set(SUBJECTS):
        found.append(f"its subject is {' and '.join(sorted(subjects))}, not one of {', '.join(SUBJECTS)}")
    merged = [proof for proof in proven if proof.tier is Tier.MERGE]
    if not merged:
        found.append("no test of the merge tier proves it")
        return found
    is_on_kubernetes = any(proof.layer in ON_KUBERNETES for proof in merged)
    reasons = {proof.no_cluster for proof in proven if proof.no_cluster}
    if is_on_kubernetes and reasons:
        found.append("it is proved on Kubernetes: no_cluster says nothing")
    if not is_on_kubernetes and len(reasons) != 1:
        found.append(f"not proved on Kubernetes, and {len(reasons)} reasons say why it need not be (no_cluster)")
    return found


def _spelled_differently(promises: Mapping[str, object]) -> list[str]:
    first: dict[str, str] = {}
    return [
        f"{words!r}: the same as {other!r}"
        for words in promises
        if (other := first.setdefault(re.sub(r"\W+", " ", words).strip().lower(), words)) != words
    ]


def _place(proof: Proof) -> tuple[int, int, str, int]:
    """Where it stands on the page: tests on a cluster come first."""
    return _rank(SUBJECTS, proof.subject), _rank(ON_KUBERNETES, proof.layer), proof.file, proof.line


def _rank(order: Sequence[str], name: str) -> int:
    return order.index(name) if name in order else len(order)
