"""What a remote command pays for the API access before it does anything: all the modules that are imported."""

from __future__ import annotations

from tests.support.imports import ALWAYS, CORES, imported_by

OURS = {
    "mpirt",
    "mpirt.errors",
    "mpirt.values",
    *(
        f"mpirt.kubeapi{name}"
        for name in (
            "",
            ".answers",
            ".asks",
            ".credentials",
            ".deadline",
            ".dial",
            ".endpoint",
            ".exchange",
            ".execs",
            ".http",
            ".jsontext",
            ".listing",
            ".listwatch",
            ".resolve",
            ".stream",
            ".tls",
            ".tlslib",
            ".upgrade",
            ".watch",
            ".watchlines",
            ".watchlink",
            ".wire",
        )
    ),
}


class TestTheFastPath:
    def test_of_one_request_and_one_watch_is_this_and_no_more(self) -> None:
        modules = ("endpoint", "execs", "watch", "watchlink")
        loaded = imported_by(*(f"mpirt.kubeapi.{name}" for name in modules))

        assert loaded - CORES - ALWAYS - imported_by("enum", "hashlib") == OURS

    def test_leaves_the_watch_to_who_wants_one(self) -> None:
        loaded = imported_by("mpirt.kubeapi.access.endpoint", "mpirt.kubeapi.request.execs")

        assert loaded.isdisjoint({"json", "re"})
        assert OURS - loaded == {
            f"mpirt.kubeapi.{name}" for name in ("listing", "listwatch", "watch", "watchlines", "watchlink")
        }


class TestThePathOfAKubeconfig:
    def test_is_where_yaml_comes_in(self) -> None:
        loaded = imported_by("mpirt.kubeapi.access.kubeconfig")

        assert {"yaml", "subprocess", "urllib.parse", "pathlib"} <= loaded

    def test_still_does_without_what_is_dearest(self) -> None:
        loaded = imported_by("mpirt.kubeapi.access.kubeconfig")

        assert loaded.isdisjoint({"email", "http.client", "urllib.request", "asyncio", "logging", "websocket"})
