"""What every remote command pays for before it does anything: the modules that are imported, all of them."""

from __future__ import annotations

from tests.protocol.imports import imported_by_a_run
from tests.protocol.rsh.agent import Ground, environment
from tests.support.imports import ALWAYS, CORES, SCANNER, imported_by

OURS = {
    "mpirt", "mpirt.errors", "mpirt.keeper", "mpirt.launchenv", "mpirt.names", "mpirt.values",
    *(f"mpirt.kubeapi{name}" for name in (
        "", ".answers", ".asks", ".channels", ".credentials", ".deadline", ".dial", ".endpoint", ".exchange",
        ".execs", ".frames", ".http", ".jsontext", ".resolve", ".stream", ".tls", ".tlslib", ".upgrade", ".wire",
    )),
    *(f"mpirt.rsh{name}" for name in (
        "", ".direct", ".main", ".tasks", ".tasks.launcher", ".tasks.settings", ".tasks.task",
        ".invocation", ".invocation.argv", ".invocation.launchers", ".invocation.options", ".invocation.order",
        ".invocation.seconds",
        ".protocol", ".protocol.entrance", ".protocol.greeting", ".protocol.keeperframes",
        ".protocol.markers",
        ".pod", ".pod.liveness",
        ".session", ".session.ending", ".session.events", ".session.holding", ".session.machine",
        ".session.record", ".session.session", ".session.starting",
        ".ports", ".ports.chance", ".ports.execlink", ".ports.loop", ".ports.sessionio", ".ports.signals",
        ".stdio", ".stdio.descriptors", ".stdio.output", ".stdio.owndescriptors",
    )),
}  # fmt: skip
# Of the standard library, with what they bring along.
STANDARD = ("enum", "gc", "hashlib", "heapq", "signal", "time")
WRAPPER = {
    f"mpirt.rsh.{name}"
    for name in (
        "protocol.printf",
        "protocol.script",
        "protocol.streams",
        "protocol.wrapper",
        "session.bound",
        "session.findings",
        "session.report",
        "session.stdinflow",
    )
}
KEEPER = {
    f"mpirt.rsh.{name}"
    for name in ("protocol.conversation", "session.connected", "session.findings", "session.held")
}
SENDING = {"mpirt.rsh.protocol.printf"}
WATCH = {
    *(f"mpirt.kubeapi.{name}" for name in ("listing", "listwatch", "watch", "watchlines", "watchlink")),
    *("mpirt.objects", "mpirt.podobjects"),
    *(f"mpirt.rsh.{name}" for name in ("pod.evidence", "pod.facts", "watches", "watches.podwatch")),
}
DEAR = {
    "asyncio", "click", "contextlib", "dataclasses", "email", "encodings.idna", "http", "inspect", "logging",
    "pathlib", "random", "subprocess", "tempfile", "threading", "traceback", "typing", "urllib", "websocket",
    "yaml",
}  # fmt: skip


def imported_to_begin() -> set[str]:
    return imported_by("mpirt.rsh.direct", "mpirt.rsh.main")


def imported_meanwhile(ground: Ground, command: str, **more: str) -> tuple[int, set[str]]:
    """The code of a command that says nothing, and what is imported on the way."""
    account = ground.folder / "account"
    env = environment(ground.folder, {**ground.server.service_account(account), **more})
    lines, code, loaded = imported_by_a_run("mpirt.rsh.main", "w-0", command, account=account, env=env)
    assert lines == []
    return code, loaded


class TestTheStart:
    def test_imports_this_and_no_more(self) -> None:
        assert imported_to_begin() - CORES - ALWAYS - imported_by(*STANDARD) == OURS

    def test_leaves_out_what_is_dear(self) -> None:
        assert {name.partition(".")[0] for name in imported_to_begin()}.isdisjoint(DEAR)


class TestARunThatAKeeperHolds:
    def test_imports_nothing_more(self, ground: Ground) -> None:
        # The keeper is there already: the first one had it sent.
        imported_meanwhile(ground, "true", MPIRT_KEEPER="on")

        assert imported_meanwhile(ground, "true", MPIRT_KEEPER="on") == (0, KEEPER)

    def test_that_takes_longer_watches_its_pod(self, ground: Ground) -> None:
        code, loaded = imported_meanwhile(ground, "sleep 1.2", MPIRT_KEEPER="on")

        assert (code, loaded - SCANNER - SENDING) == (0, KEEPER | WATCH)


class TestARunUnderTheWrapper:
    def test_imports_nothing_more(self, ground: Ground) -> None:
        assert imported_meanwhile(ground, "true") == (0, WRAPPER)

    def test_that_fails_reads_why(self, ground: Ground) -> None:
        code, loaded = imported_meanwhile(ground, "exit 3")

        assert (code, loaded - SCANNER) == (3, WRAPPER)

    def test_that_takes_longer_watches_its_pod(self, ground: Ground) -> None:
        code, loaded = imported_meanwhile(ground, "sleep 1.2")

        assert (code, loaded - SCANNER) == (0, WRAPPER | WATCH)
