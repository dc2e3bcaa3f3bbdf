"""
The mark of a test that proves what README and docs promise to users.

docs/promises.md is made of these marks; `.venv/bin/python -m tests.promises` writes it.
"""

from __future__ import annotations

from typing import Literal

import pytest

Subject = Literal[
    "mpirt-rsh", "mpirt-discover", "MPIJob", "TrainingJob", "GPUTask", "mpirt-controller", "mpirt", "installation",
    "safety", "neighbours",
]  # fmt: skip
"""What a promise is about, in the order of the page."""


def promise(words: str, *, of: Subject, no_cluster: str | None = None) -> pytest.MarkDecorator:
    """
    The test proves this promise, in the words of all tests that prove it.

    `no_cluster` says why tests without Kubernetes are proof enough. The marks are read from the source, so all
    arguments are literals.
    """
    return pytest.mark.promise(words, of=of, no_cluster=no_cluster)
