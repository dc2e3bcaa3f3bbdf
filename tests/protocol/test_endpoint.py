"""From the environment to an answer: every way to say who we are, against a server that checks it."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mpirt.errors import ConfigError
from mpirt.kubeapi.access.endpoint import find_endpoint
from mpirt.kubeapi.request.answers import Unauthorized
from tests.apiserver.certificates import Pem
from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer
from tests.protocol.clients import Connect, soon

Read = Callable[[dict[str, str]], Any]


@pytest.fixture
def read(apiserver: ApiServer, connect: Connect, tmp_path: Path) -> Read:
    """Reads the pod w-0 as the environment says."""
    apiserver.world.put(pod("w-0"))

    def reader(environ: dict[str, str]) -> Any:
        # A plugin's answers are left where temporary files are.
        endpoint = find_endpoint({"TMPDIR": str(tmp_path), **environ}, service_account=str(tmp_path))
        found: Any = connect(endpoint).get_pod(endpoint.namespace, "w-0", soon())
        return found["metadata"]["name"]

    return reader


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def plugin(folder: Path, **status: str) -> dict[str, Any]:
    """A credential plugin: the part of a kubeconfig that names it."""
    version = "client.authentication.k8s.io/v1"
    answer = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
    script = folder / "plugin"
    script.write_text(f"#!/bin/sh\necho x >> {folder}/runs\nprintf '%s' {shlex.quote(answer)}\n")
    script.chmod(0o755)
    return {"exec": {"apiVersion": version, "command": "./plugin", "args": None, "env": None}}


def as_files(folder: Path, pem: Pem) -> dict[str, str]:
    (folder / "me.crt").write_text(pem.chain)
    (folder / "me.key").write_text(pem.key)
    return {"client-certificate": "me.crt", "client-key": "me.key"}


class TestAServiceAccount:
    def test_reads_a_pod(self, apiserver: ApiServer, read: Read, tmp_path: Path) -> None:
        assert read(apiserver.service_account(tmp_path)) == "w-0"

    def test_follows_its_token(self, apiserver: ApiServer, read: Read, tmp_path: Path) -> None:
        environ = apiserver.service_account(tmp_path)
        apiserver.token = "the-next-token"
        (tmp_path / "token").write_text("the-next-token\n")

        assert read(environ) == "w-0"

    def test_with_an_old_token_is_refused(self, apiserver: ApiServer, read: Read, tmp_path: Path) -> None:
        environ = apiserver.service_account(tmp_path)
        apiserver.token = "the-next-token"

        with pytest.raises(Unauthorized, match="credentials of the pod's service account"):
            read(environ)

    @pytest.mark.parametrize("name", ["ca.crt", "token"])
    def test_without_a_file_opens_no_connection(
        self, apiserver: ApiServer, read: Read, tmp_path: Path, name: str
    ) -> None:
        environ = apiserver.service_account(tmp_path)
        (tmp_path / name).unlink()

        with pytest.raises(ConfigError, match=f"cannot read the service account's .* {tmp_path}/{name}"):
            read(environ)

        assert apiserver.connections == 0


class TestAKubeconfig:
    def test_with_a_token(self, apiserver: ApiServer, read: Read, tmp_path: Path) -> None:
        assert read({"KUBECONFIG": str(apiserver.kubeconfig(tmp_path))}) == "w-0"

    def test_with_a_certificate_in_files(self, apiserver: ApiServer, read: Read, tmp_path: Path) -> None:
        path = apiserver.kubeconfig(tmp_path, **as_files(tmp_path, apiserver.authority.client()))

        assert read({"KUBECONFIG": str(path)}) == "w-0"

    def test_with_a_certificate_inside_and_leaves_no_key_behind(
        self, apiserver: ApiServer, read: Read, tmp_path: Path
    ) -> None:
        pem = apiserver.authority.client()
        user = {"client-certificate-data": b64(pem.chain), "client-key-data": b64(pem.key)}
        path = apiserver.kubeconfig(tmp_path / "kube", **user)

        assert read({"KUBECONFIG": str(path), "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}) == "w-0"
        assert sorted(found.name for found in tmp_path.rglob("*")) == ["ca.crt", "kube", "kubeconfig"]

    def test_with_a_plugin_that_knows_a_token(self, apiserver: ApiServer, read: Read, tmp_path: Path) -> None:
        path = apiserver.kubeconfig(tmp_path, **plugin(tmp_path, token=apiserver.token))

        assert read({"KUBECONFIG": str(path), "PATH": "/usr/bin:/bin"}) == "w-0"

    def test_with_a_plugin_that_knows_a_certificate(
        self, apiserver: ApiServer, read: Read, tmp_path: Path
    ) -> None:
        pem = apiserver.authority.client()
        status = {"clientCertificateData": pem.chain, "clientKeyData": pem.key}
        path = apiserver.kubeconfig(tmp_path, **plugin(tmp_path, **status))

        assert read({"KUBECONFIG": str(path), "PATH": "/usr/bin:/bin"}) == "w-0"

    def test_asks_its_plugin_once_more_when_its_answer_is_not_accepted(
        self, apiserver: ApiServer, read: Read, tmp_path: Path
    ) -> None:
        path = apiserver.kubeconfig(tmp_path, **plugin(tmp_path, token="stale"))

        with pytest.raises(Unauthorized, match=r'credentials of context "test" of .*kubeconfig') as caught:
            read({"KUBECONFIG": str(path), "PATH": "/usr/bin:/bin"})

        assert (tmp_path / "runs").read_text() == "x\nx\n"
        assert "stale" not in str(caught.value)
