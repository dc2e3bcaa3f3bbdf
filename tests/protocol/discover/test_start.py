"""What a call without a switchboard does not import: what costs milliseconds and is of no use to it."""

from __future__ import annotations

from tests.protocol.discover.program import Program
from tests.protocol.imports import imported_by_a_run
from tests.support.imports import imported_by

DEAR = {
    "asyncio", "click", "dataclasses", "email", "http", "inspect", "logging", "psutil", "random", "subprocess",
    "tempfile", "traceback", "urllib", "websocket", "yaml",
}  # fmt: skip


def dear(loaded: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in loaded} & DEAR


def test_the_start_imports_no_module_that_is_dear() -> None:
    assert dear(imported_by("mpirt.discover.main")) == set()


def test_a_request_to_the_api_server_imports_no_module_that_is_dear(program: Program) -> None:
    account = program.folder / "account"
    own = {"HOME": str(program.folder), "MPIRT_DISCOVER_FIRST_TIMEOUT": "0"}
    env = {**program.environment(program.server.service_account(account)), **own}
    del env["KUBECONFIG"]

    hosts, code, loaded = imported_by_a_run("mpirt.discover.main", "--job", "train", account=account, env=env)

    assert (hosts, code, dear(loaded)) == (["w-0:1", "w-2:4", "w-10:1"], 0, set())
