"""Where the test cluster can be reached from."""

from __future__ import annotations

from tests.kube import layout


def test_nothing_listens_on_all_addresses() -> None:
    assert {address for address, _, _ in layout.listening()} == {"10.250.0.1", "127.77.0.1"}
