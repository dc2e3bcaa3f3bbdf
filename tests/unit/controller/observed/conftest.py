"""Fixtures of what the controller has seen."""

from __future__ import annotations

import pytest

from mpirt.controller.observed.store import Store
from tests.unit.controller.jobs import NOON


@pytest.fixture
def store() -> Store:
    return Store(["MPIJob"], clock=lambda: NOON)
