"""
A pytest plugin for a run under coverage: branches are counted in tests and fixtures, and not in pytest itself.

Before Python 3.12, counting doubles the time of all that runs meanwhile, of whatever file it is. What is imported
when tests are collected is counted, too. A test that is marked `uncounted` takes no branch that others don't take:
where that is wrong, coverage's report fails.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _typeshed import TraceFunction

_counter: pytest.StashKey[TraceFunction | None] = pytest.StashKey()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    session.config.stash[_counter] = sys.gettrace()
    with _counted_by(None):
        return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_fixture_setup(request: pytest.FixtureRequest) -> Iterator[None]:
    with _counted_by(request.config.stash.get(_counter, None)):
        return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    is_counted = pyfuncitem.get_closest_marker("uncounted") is None
    with _counted_by(pyfuncitem.config.stash[_counter] if is_counted else None):
        return (yield)


@contextmanager
def _counted_by(counter: TraceFunction | None) -> Iterator[None]:
    before = sys.gettrace()
    sys.settrace(counter)
    try:
        yield
    finally:
        sys.settrace(before)
