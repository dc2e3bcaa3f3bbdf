"""What a remote command pays for the API access before it does anything: all the modules that are imported."""

from __future__ import annotations

import subprocess
import sys

# In a fresh interpreter without site-packages' start-up code, which may import anything. It imports nothing.
REPORT = """
import sys
sys.path[:0] = sys.argv[2].split("\\n")
before = set(sys.modules)
for name in sys.argv[1].split():
    __import__(name)
print("\\n".join(set(sys.modules) - before))
"""

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
# The cores of the standard library's ssl and socket, never those themselves: docs/architecture.md has their cost.
CORES = {"_socket", "_ssl", "binascii", "errno", "select"}
# The core of json, where there is JSON to read; never that itself.
SCANNER = {"_json"}
# What every Python has loaded that was not started with -S.
ALWAYS = {"__future__", "_collections_abc", "_stat", "genericpath", "os", "os.path", "posixpath", "stat"}


PATHS = "\n".join(sys.path)


def imported_by(*modules: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-IS", "-c", REPORT, " ".join(modules), PATHS],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return set(done.stdout.split())


class TestTheFastPath:
    def test_of_one_request_and_one_watch_is_this_and_no_more(self) -> None:
        modules = ("endpoint", "execs", "watch", "watchlink")
        loaded = imported_by(*(f"mpirt.kubeapi.{name}" for name in modules))

        assert loaded - CORES - ALWAYS - imported_by("enum", "hashlib") == OURS

    def test_leaves_the_watch_to_who_wants_one(self) -> None:
        loaded = imported_by("mpirt.kubeapi.endpoint", "mpirt.kubeapi.execs")

        assert loaded.isdisjoint({"json", "re"})
        assert OURS - loaded == {
            f"mpirt.kubeapi.{name}" for name in ("listing", "listwatch", "watch", "watchlines", "watchlink")
        }


class TestThePathOfAKubeconfig:
    def test_is_where_yaml_comes_in(self) -> None:
        loaded = imported_by("mpirt.kubeapi.kubeconfig")

        assert {"yaml", "subprocess", "urllib.parse", "pathlib"} <= loaded

    def test_still_does_without_what_is_dearest(self) -> None:
        loaded = imported_by("mpirt.kubeapi.kubeconfig")

        assert loaded.isdisjoint({"email", "http.client", "urllib.request", "asyncio", "logging", "websocket"})
