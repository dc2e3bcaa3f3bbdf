"""Where the API server is found, in the order kubectl looks, and what is said when it isn't."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpirt.errors import ConfigError
from mpirt.kubeapi.access.credentials import PemFile, PemText, Secret, StoredCredentials
from mpirt.kubeapi.access.endpoint import Endpoint, find_endpoint, in_cluster
from mpirt.kubeapi.access.steps import Deadline, run

IN_A_POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT_HTTPS": "6443"}
KUBECONFIG = """
current-context: c
clusters: [{name: k, cluster: {server: "https://api.example:8443"}}]
users: [{name: u, user: {token: t0ken}}]
contexts: [{name: c, context: {cluster: k, user: u}}, {name: d, context: {cluster: k, user: u, namespace: ml}}]
"""


@pytest.fixture
def account(tmp_path: Path) -> Path:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("first\n")
    (folder / "namespace").write_text("ml\n")
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    (folder / ".kube").mkdir(parents=True)
    (folder / ".kube" / "config").write_text(KUBECONFIG)
    return folder


class TestInAPod:
    def test_the_service_account_says_it_all(self, account: Path) -> None:
        endpoint = in_cluster(IN_A_POD, service_account=str(account))

        assert (endpoint.host, endpoint.port, endpoint.namespace) == ("10.96.0.1", 6443, "ml")
        assert endpoint.ca == PemFile(f"{account}/ca.crt", "the service account's CA")
        assert (endpoint.name, endpoint.base_path, endpoint.server_name) == ("10.96.0.1:6443", "", "")
        assert endpoint.trust == f"the service account's CA {account}/ca.crt"
        assert endpoint.origin == "the pod's service account"

    def test_the_token_is_read_at_every_connection(self, account: Path) -> None:
        source = in_cluster(IN_A_POD, service_account=str(account)).source
        first = run(source.credentials(Deadline(1.0)))
        (account / "token").write_text("second")

        second = run(source.credentials(Deadline(1.0)))

        assert (first.token, second.token) == (Secret("first"), Secret("second"))

    @pytest.mark.parametrize("host", ["fd00::1", "[fd00::1]"])
    def test_an_ipv6_address_is_bracketed_where_it_must_be(self, account: Path, host: str) -> None:
        endpoint = in_cluster({"KUBERNETES_SERVICE_HOST": host}, service_account=str(account))

        assert (endpoint.host, endpoint.name) == ("fd00::1", "[fd00::1]:443")

    @pytest.mark.parametrize(
        ("environ", "port"),
        [
            pytest.param({"KUBERNETES_SERVICE_PORT_HTTPS": "1", "KUBERNETES_SERVICE_PORT": "2"}, 1, id="https"),
            pytest.param({"KUBERNETES_SERVICE_PORT": "2"}, 2, id="the only one"),
            pytest.param({}, 443, id="none"),
        ],
    )
    def test_the_port(self, account: Path, environ: dict[str, str], port: int) -> None:
        environ = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", **environ}

        assert in_cluster(environ, service_account=str(account)).port == port

    @pytest.mark.parametrize("port", ["https", "0", "65536", "-1", "4٣", "9" * 5000])
    def test_a_port_that_is_none(self, account: Path, port: str) -> None:
        environ = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": port}

        with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_PORT: invalid port"):
            in_cluster(environ, service_account=str(account))

    @pytest.mark.parametrize("host", ["10.0.0.1\r\nX: y", "two words", "bücher.example"])
    def test_a_host_that_is_none(self, account: Path, host: str) -> None:
        with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_HOST is not a host"):
            in_cluster({"KUBERNETES_SERVICE_HOST": host}, service_account=str(account))

    def test_without_a_service_account(self, tmp_path: Path) -> None:
        text = (
            f"cannot read the service account's namespace {tmp_path}/namespace: No such file or directory; "
            "does the pod's service account have automountServiceAccountToken: false?"
        )

        with pytest.raises(ConfigError) as caught:
            in_cluster(IN_A_POD, service_account=str(tmp_path))

        assert str(caught.value) == text

    def test_not_in_a_pod(self, account: Path) -> None:
        with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_HOST is not set"):
            in_cluster({}, service_account=str(account))

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            pytest.param("", "is empty: it must hold a bearer token", id="empty"),
            pytest.param(" \n", "is empty: it must hold a bearer token", id="blank"),
            pytest.param("to\nken", "does not hold a bearer token", id="two lines"),
            pytest.param("to ken", "does not hold a bearer token", id="two words"),
            pytest.param("tokèn", "does not hold a bearer token", id="not ASCII"),
            pytest.param("x" * 1024 * 1025, "is larger than 1048576 bytes: is it the right file?", id="huge"),
        ],
    )
    def test_a_token_that_is_none_is_not_shown(self, account: Path, text: str, problem: str) -> None:
        source = in_cluster(IN_A_POD, service_account=str(account)).source
        (account / "token").write_text(text)

        with pytest.raises(ConfigError) as caught:
            run(source.credentials(Deadline(1.0)))

        assert str(caught.value).startswith(f"the service account's token {account}/token {problem}")
        assert text.strip() == "" or text not in str(caught.value)

    def test_a_token_in_another_encoding(self, account: Path) -> None:
        (account / "token").write_bytes(b"\xff\xfe\x00")
        source = in_cluster(IN_A_POD, service_account=str(account)).source

        with pytest.raises(ConfigError, match="is not text: is it the right file"):
            run(source.credentials(Deadline(1.0)))


class TestTheOrder:
    def test_kubeconfig_in_the_environment_comes_first(self, account: Path, home: Path, tmp_path: Path) -> None:
        (tmp_path / "other").write_text(KUBECONFIG.replace("api.example", "other.example"))
        environ = {**IN_A_POD, "HOME": str(home), "KUBECONFIG": str(tmp_path / "other")}

        assert find_endpoint(environ, service_account=str(account)).host == "other.example"

    def test_then_the_one_at_home(self, account: Path, home: Path) -> None:
        environ = {**IN_A_POD, "HOME": str(home), "KUBECONFIG": ""}

        assert find_endpoint(environ, service_account=str(account)).host == "api.example"

    def test_then_the_service_account(self, account: Path, tmp_path: Path) -> None:
        environ = {**IN_A_POD, "HOME": str(tmp_path)}

        assert find_endpoint(environ, service_account=str(account)).host == "10.96.0.1"

    def test_then_there_is_none(self) -> None:
        with pytest.raises(ConfigError) as caught:
            find_endpoint({"HOME": "/nowhere"})

        assert str(caught.value) == (
            "no API server configured: no KUBECONFIG, no /nowhere/.kube/config, "
            "and not in a pod (no KUBERNETES_SERVICE_HOST); set KUBECONFIG"
        )

    @pytest.mark.parametrize(
        ("variable", "option"), [("d", ""), ("none", "d")], ids=["by the environment", "by the command line first"]
    )
    def test_a_context_may_be_named(self, home: Path, variable: str, option: str) -> None:
        endpoint = find_endpoint({"HOME": str(home), "MPIRT_CONTEXT": variable}, context=option)

        assert (endpoint.namespace, endpoint.origin) == ("ml", f'context "d" of {home}/.kube/config')

    def test_a_context_on_the_command_line_that_is_not_there(self, home: Path) -> None:
        with pytest.raises(ConfigError, match=r'no "x", which --context names'):
            find_endpoint({"HOME": str(home)}, context="x")

    @pytest.mark.parametrize(("variable", "option", "name"), [("", "d", "--context"), ("d", "", "MPIRT_CONTEXT")])
    def test_a_context_without_a_kubeconfig(self, account: Path, variable: str, option: str, name: str) -> None:
        environ = {**IN_A_POD, "MPIRT_CONTEXT": variable}

        with pytest.raises(ConfigError, match=f"{name} is set, but there is no kubeconfig"):
            find_endpoint(environ, service_account=str(account), context=option)


class TestTrust:
    @pytest.mark.parametrize(
        ("ca", "words"),
        [
            pytest.param(None, "the system's list of authorities", id="system"),
            pytest.param(PemFile("/ca.crt", "certificate-authority"), "certificate-authority /ca.crt", id="file"),
            (PemText(Secret("x"), "certificate-authority-data"), "certificate-authority-data"),
        ],
    )
    def test_is_put_into_words(self, ca: PemFile | PemText | None, words: str) -> None:
        assert Endpoint("h", 1, ca, StoredCredentials(), "the test").trust == words
