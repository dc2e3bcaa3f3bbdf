"""docs/promises.md, made of the proofs. Reads and writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from tests.promises.finder import Proof
from tests.promises.rules import by_promise

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
