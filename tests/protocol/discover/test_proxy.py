"""The look for hosts takes the proxy of the environment too."""

from __future__ import annotations

import json
from pathlib import Path

from tests.apiserver.certificates import HOST
from tests.apiserver.proxy import Proxy
from tests.protocol.discover.program import JOB, Program, worker


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
