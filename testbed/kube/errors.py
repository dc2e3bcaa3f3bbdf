"""The one error a person sees from the test cluster: what is wrong, and what to do about it."""

from __future__ import annotations


class ClusterError(Exception):
    """Something that keeps the cluster from working. `remedy` is a sentence that says what to do."""

    def __init__(self, what: str, *, remedy: str = "") -> None:
        super().__init__(f"{what}\n  {remedy}" if remedy else what)
        self.what = what
        self.remedy = remedy
