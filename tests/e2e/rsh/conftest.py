"""
The tests of mpirt-rsh run in both of its forms, for agents of the test itself and for those in launcher pods.

Those that need the cluster for themselves take minutes, and what others are about is in the pod: both run by a
switchboard only, unless MPIRT_TEST_FORMS is "both". What differs between the forms is not what happens to a
session.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.forms import Form, chosen

# The other form's tests are the same.
_TWINS = 4


# After the marks of the conftest above are set.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if _form(item) is Form.DIRECT:
            item.add_marker(pytest.mark.one_in(_TWINS))
    if os.environ.get("MPIRT_TEST_FORMS") == "both":
        return
    left_out = [item for item in items if _form(item) is Form.DIRECT and _in_one_form(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _in_one_form(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ("alone", "in_the_pod"))


def _form(item: pytest.Item) -> Form | None:
    spec = getattr(item, "callspec", None)
    found: Form | None = None if spec is None else spec.params.get("form")
    return found


@pytest.fixture(autouse=True, params=list(Form), ids=str, scope="session")
def form(request: pytest.FixtureRequest, board: Path) -> Iterator[Form]:
    """How commands are run: each by itself, or all by a switchboard."""
    with chosen(request.param, board) as found:
        yield found
