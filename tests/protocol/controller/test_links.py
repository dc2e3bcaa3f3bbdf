"""What an API server asks of its clients beside its answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mpirt.controller.cluster.link import Answer, Link, Request, connect
from mpirt.controller.monitoring.metrics import Metrics
from tests.apiserver.objects import ObjectServer


@pytest.fixture
def link(server: ObjectServer, tmp_path: Path) -> Iterator[Link]:
    made = connect(str(server.kubeconfig(tmp_path)), count=Metrics().called)
    yield made
    made.close()


def pods(link: Link, **query: str) -> Answer:
    """The answer to a list, or the no to a watch."""
    request = Request("list", "GET", "/api/v1/namespaces/ml/pods", "pods", query=query)
    answer = link.watch(request) if query else link.ask(request)
    assert isinstance(answer, Answer)
    return answer


@pytest.mark.parametrize(
    ("asked", "honoured"),
    [
        pytest.param(7, 7, id="seconds"),
        pytest.param(None, 0, id="nothing"),
        pytest.param(86400, 300, id="more than is reasonable"),
        # Servers don't, but a proxy may.
        pytest.param("Wed, 21 Oct 2026 07:28:00 GMT", 0, id="a date"),
    ],
)
def test_the_wait_that_comes_with_a_no_is_known(
    server: ObjectServer, link: Link, asked: int | str | None, honoured: float
) -> None:
    server.refuse("list", "pods", 429, "TooManyRequests", "later", retryAfterSeconds=asked)
    server.refuse("watch", "pods", 429, "TooManyRequests", "later", retryAfterSeconds=asked)

    for answer in (pods(link), pods(link, watch="1")):
        assert (answer.code, answer.retry_after) == (429, honoured)


def test_a_good_answer_asks_for_no_wait(link: Link) -> None:
    assert pods(link).retry_after == 0
