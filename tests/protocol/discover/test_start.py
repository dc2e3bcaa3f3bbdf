"""What a call without a switchboard costs: the modules that are imported, all of them."""

from __future__ import annotations

from tests.protocol.discover.program import Program
from tests.protocol.imports import imported_by_a_run
from tests.support.imports import ALWAYS, CORES, SCANNER, imported_by

OURS = {
    "mpirt", "mpirt.backoff", "mpirt.errors", "mpirt.hosts", "mpirt.names", "mpirt.objects", "mpirt.podobjects",
    "mpirt.values",
    *(f"mpirt.kubeapi{name}" for name in (
        "", ".answers", ".asks", ".credentials", ".deadline", ".dial", ".endpoint", ".exchange", ".http",
        ".jsontext", ".resolve", ".stream", ".tls", ".tlslib", ".wire",
    )),
    *(f"mpirt.discover{name}" for name in (
        "", ".answer", ".discovery", ".drivers", ".job", ".main", ".options", ".output", ".patience",
    )),
}  # fmt: skip
# Where there is something to list.
REQUEST = {"mpirt.kubeapi.listing"}
DEAR = {
    "asyncio", "click", "contextlib", "dataclasses", "email", "hashlib", "http", "inspect", "json",
    "logging", "pathlib", "psutil", "random", "re", "socket", "ssl", "subprocess", "tempfile", "threading",
    "traceback", "typing", "urllib", "websocket", "yaml",
}  # fmt: skip


def imported_to_begin() -> set[str]:
    return imported_by("mpirt.discover.main")


def imported_meanwhile(program: Program, *words: str) -> tuple[str, int, set[str]]:
    """What is printed, the code, and what is imported on the way."""
    account = program.folder / "account"
    own = {"HOME": str(program.folder), "MPIRT_DISCOVER_FIRST_TIMEOUT": "0"}
    env = {**program.environment(program.server.service_account(account)), **own}
    del env["KUBECONFIG"]
    hosts, code, loaded = imported_by_a_run("mpirt.discover.main", *words, account=account, env=env)
    return "\n".join(hosts), code, loaded


class TestTheStart:
    def test_imports_this_and_no_more(self) -> None:
        assert imported_to_begin() - CORES - ALWAYS - imported_by("enum", "signal", "time") == OURS

    def test_leaves_out_what_is_dear(self) -> None:
        assert {name.partition(".")[0] for name in imported_to_begin()}.isdisjoint(DEAR)


class TestARunInAPod:
    def test_imports_a_request_and_nothing_more(self, program: Program) -> None:
        hosts, code, loaded = imported_meanwhile(program, "--job", "train")

        assert (hosts, code, loaded - SCANNER) == ("w-0:1\nw-2:4\nw-10:1", 0, REQUEST)

    def test_that_finds_nothing_imports_nothing_more(self, program: Program) -> None:
        hosts, code, loaded = imported_meanwhile(program, "--job", "other")

        assert (hosts, code, loaded - SCANNER) == ("", 243, REQUEST)
