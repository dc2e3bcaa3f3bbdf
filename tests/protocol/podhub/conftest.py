"""Crowds of followers, and the pods that they follow."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer
from tests.protocol.podhub.crowds import JOB, SELECTOR, Begin, Crowd


@pytest.fixture
def begin(apiserver: ApiServer) -> Iterator[Begin]:
    """Makes crowds, and closes them at the end. There are the pods w-0 to w-3 of job a, and x without labels."""
    apiserver.world.put(*(pod(f"w-{number}", labels=JOB) for number in range(4)), pod("x"))
    with contextlib.ExitStack() as stack:

        def make(*names: str, selector: str | None = None) -> Crowd:
            crowd = Crowd(apiserver, selector)
            stack.callback(crowd.close)
            crowd.follow(*names)
            return crowd

        yield make


@pytest.fixture
def settled(apiserver: ApiServer, begin: Begin) -> Begin:
    """Makes crowds of which all have heard of their pods, by a watch on those of job a."""

    def make(*names: str) -> Crowd:
        crowd = begin(*names, selector=SELECTOR)
        crowd.settles(apiserver)
        return crowd

    return make
