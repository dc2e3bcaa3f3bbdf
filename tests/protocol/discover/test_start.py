"""A call without a switchboard: its way to the API server, and the modules that it does without."""

from __future__ import annotations

import json
from pathlib import Path

from tests.apiserver.certificates import HOST
from tests.apiserver.proxy import Proxy
from tests.protocol.discover.program import JOB, Program, worker
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


def test_hosts_are_found_through_the_proxy_of_the_environment(program: Program) -> None:
    program.server.world.put(worker(0))
    path = Path(program.kubeconfig)
    config = json.loads(path.read_text(encoding="utf-8"))
    far = {"server": f"https://api.example:{program.server.port}", "tls-server-name": HOST}
    config["clusters"][0]["cluster"] |= far
    path.write_text(json.dumps(config), encoding="utf-8")
    proxy = Proxy((HOST, program.server.port))

    ended = program.run("--job", JOB["mpirt.dev/job"], env={"https_proxy": proxy.url})
    proxy.stop()

    assert (ended.code, ended.errors) == (0, "")
    assert [line for line, _ in proxy.asked] == [f"CONNECT api.example:{program.server.port} HTTP/1.1"]
