"""What a request and a watch import: nothing that is dear and of no use to them."""

from __future__ import annotations

from tests.support.imports import imported_by

DEAR = {"asyncio", "email", "http.client", "logging", "subprocess", "urllib.request"}


def test_a_request_and_a_watch_import_neither_yaml_nor_subprocess() -> None:
    loaded = imported_by(
        *(
            f"mpirt.kubeapi.{name}"
            for name in ("access.endpoint", "request.execs", "watch.link", "watch.listwatch")
        )
    )

    assert loaded.isdisjoint(DEAR | {"yaml"})


def test_a_request_imports_no_watch() -> None:
    loaded = imported_by("mpirt.kubeapi.access.endpoint", "mpirt.kubeapi.request.execs")

    assert not [name for name in loaded if name.startswith("mpirt.kubeapi.watch")]


def test_a_kubeconfig_imports_yaml_and_still_none_of_the_dear_ones_but_subprocess() -> None:
    loaded = imported_by("mpirt.kubeapi.access.kubeconfig")

    assert "yaml" in loaded
    assert loaded.isdisjoint(DEAR - {"subprocess"})
