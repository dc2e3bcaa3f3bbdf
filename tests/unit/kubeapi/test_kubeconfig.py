"""Kubeconfigs as people have them: merged as kubectl does, refused field by field where they can't be honoured."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from mpirt.errors import ConfigError
from mpirt.kubeapi.access.credentials import Certificate, Credentials, PemFile, PemText, Secret
from mpirt.kubeapi.access.endpoint import Endpoint
from mpirt.kubeapi.access.kubeconfig import from_kubeconfigs
from mpirt.kubeapi.access.steps import Deadline, run
from tests.promises import promise
from tests.unit.kubeapi.plugins import Config, config

NOBODY = 65534

# As kind, k3s and kubeadm write it: everything inline.
KIND = """\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: Q0EgUEVN
    server: https://127.0.0.1:33445
  name: kind-kind
contexts:
- context:
    cluster: kind-kind
    user: kind-kind
  name: kind-kind
current-context: kind-kind
kind: Config
preferences: {}
users:
- name: kind-kind
  user:
    client-certificate-data: Q0VSVCBQRU0=
    client-key-data: S0VZIFBFTQ==
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config"


def read(path: Path, value: Config | str, context: str = "") -> Endpoint:
    path.write_text(value if isinstance(value, str) else yaml.safe_dump(value))
    return from_kubeconfigs([str(path)], {"PATH": "/bin"}, context=context)


def credentials(endpoint: Endpoint) -> Credentials:
    return run(endpoint.source.credentials(Deadline(1.0)))


@contextmanager
def not_as_root() -> Iterator[int]:
    """As a user whom modes keep out; which."""
    user = os.geteuid()
    if user:
        yield user
        return
    os.seteuid(NOBODY)
    try:
        yield NOBODY
    finally:
        os.seteuid(user)


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class TestAKubeconfig:
    def test_of_kind_is_read(self, path: Path) -> None:
        endpoint = read(path, KIND)

        assert (endpoint.host, endpoint.port, endpoint.base_path) == ("127.0.0.1", 33445, "")
        assert endpoint.ca == PemText(
            Secret("CA PEM"), f"{path}: clusters[kind-kind].cluster.certificate-authority-data"
        )
        assert credentials(endpoint) == Credentials(
            None,
            Certificate("CERT PEM", Secret("KEY PEM"), f"{path}: users[kind-kind].user.client-certificate-data"),
        )
        assert (endpoint.namespace, endpoint.origin) == ("default", f'context "kind-kind" of {path}')

    def test_may_be_json(self, path: Path) -> None:
        assert read(path, json.dumps(config())).host == "api.example"

    def test_may_be_yaml_that_begins_like_json(self, path: Path) -> None:
        text = yaml.safe_dump(config(), default_flow_style=True)

        assert text.startswith("{")
        assert read(path, text).host == "api.example"

    @pytest.mark.parametrize(
        ("server", "host", "port", "base_path"),
        [
            pytest.param("https://api.example", "api.example", 443, "", id="host"),
            pytest.param("https://api.example:6443/", "api.example", 6443, "", id="port and slash"),
            pytest.param("https://[fd00::1]:6443", "fd00::1", 6443, "", id="IPv6"),
            pytest.param("https://r.example/k8s/clusters/c-1/", "r.example", 443, "/k8s/clusters/c-1", id="path"),
            pytest.param("api.example:6443", "api.example", 6443, "", id="no scheme"),
        ],
    )
    def test_names_the_server(self, path: Path, server: str, host: str, port: int, base_path: str) -> None:
        endpoint = read(path, config(cluster={"server": server}))

        assert (endpoint.host, endpoint.port, endpoint.base_path) == (host, port, base_path)

    def test_names_files_from_its_own_folder(self, path: Path) -> None:
        user = {"client-certificate": "pki/me.crt", "client-key": "/etc/me.key", "tokenFile": "pki/token"}
        (path.parent / "pki").mkdir()
        (path.parent / "pki" / "token").write_text("from-file")
        (path.parent / "pki" / "me.crt").write_text("CERT")

        endpoint = read(path, config(cluster={"certificate-authority": "pki/ca.crt"}, user=user))

        where = f"{path}: clusters[k].cluster.certificate-authority"
        assert endpoint.ca == PemFile(f"{path.parent}/pki/ca.crt", where)
        with pytest.raises(ConfigError, match=r"users\[u\]\.user\.client-key /etc/me\.key: No such file"):
            credentials(endpoint)

    def test_prefers_what_kubectl_prefers(self, path: Path) -> None:
        (path.parent / "token").write_text("from-file")
        cluster = {"certificate-authority-data": b64("CA"), "certificate-authority": "ca.crt"}
        user = {"token": "inline", "tokenFile": "token", "exec": {"command": "never-run"}}

        endpoint = read(path, config(cluster=cluster, user=user))

        assert isinstance(endpoint.ca, PemText)
        assert credentials(endpoint).token == Secret("from-file")

    def test_names_the_namespace_and_the_servers_other_name(self, path: Path) -> None:
        value = config(cluster={"tls-server-name": "kubernetes"}, context={"namespace": "ml"})

        endpoint = read(path, value)

        assert (endpoint.namespace, endpoint.server_name) == ("ml", "kubernetes")

    def test_trusts_the_system_without_an_authority(self, path: Path) -> None:
        assert read(path, config()).ca is None

    def test_never_shows_a_secret(self, path: Path) -> None:
        endpoint = read(path, config(user={"token": "s3cret"}))

        assert "s3cret" not in repr(endpoint) + repr(credentials(endpoint)) + str(credentials(endpoint))


class TestSeveralFiles:
    def test_the_first_to_set_a_value_wins_entry_by_entry(self, tmp_path: Path) -> None:
        first, second = config(user={"token": "first"}), config(cluster={"server": "https://second.example"})
        first["clusters"] = []
        first["current-context"] = ""
        second["users"].append({"name": "u", "user": {"token": "second", "tokenFile": "x"}})
        paths = [tmp_path / name for name in ("first", "missing", "second")]
        paths[0].write_text(yaml.safe_dump(first))
        paths[2].write_text(yaml.safe_dump(second))

        endpoint = from_kubeconfigs([str(path) for path in paths], {})

        assert endpoint.host == "second.example"
        assert credentials(endpoint).token == Secret("first")

    def test_none_of_which_exists(self) -> None:
        with pytest.raises(ConfigError, match="KUBECONFIG: no such file: /nowhere/a:/nowhere/b"):
            from_kubeconfigs(["/nowhere/a", "/nowhere/b"], {})

    def test_a_file_in_a_folder_that_may_not_be_entered_is_an_error(self, tmp_path: Path) -> None:
        folder = tmp_path / "root"
        folder.mkdir(mode=0)

        with not_as_root() as user, pytest.raises(ConfigError) as caught:
            from_kubeconfigs([str(folder / "config")], {})

        assert str(caught.value) == (
            f"cannot read KUBECONFIG {folder}/config: Permission denied; "
            f"let the user {user} read it, or set KUBECONFIG to another file or to nothing"
        )

    def test_a_path_below_a_file_is_an_error(self, path: Path) -> None:
        read(path, config())

        assert from_kubeconfigs([f"{path}/config", str(path)], {}).host == "api.example"

    def test_a_folder_in_place_of_a_file_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=f"cannot read KUBECONFIG {tmp_path}: Is a directory"):
            from_kubeconfigs([str(tmp_path)], {})


PASSWORD = "user names and passwords are not supported (nor are they by Kubernetes since 1.19); use a token"
PROVIDER = "auth providers are not supported (nor are they by kubectl since 1.26); use an exec plugin"
IMPERSONATION = "impersonation is not supported"
NOTHING = "holds no credentials; expected one of token, tokenFile, client-certificate with client-key, or exec"
VERIFIED = "the API server is always verified; give its certificate-authority instead"
PAIR = "is missing: a client certificate needs its key, and a key it"
NO_CONTEXT = "no current-context; set MPIRT_CONTEXT, or: kubectl config use-context NAME"
TEXT = "expected text, got a number; put it in quotes"
CHARACTERS = "there are characters in it that a token can't have"
CERTIFICATE = {"client-certificate": "c", "client-key": "k"}


def refused(path: Path, value: Config | str) -> str:
    """What is said of it after the file's name, and never with a secret."""
    with pytest.raises(ConfigError) as caught:
        read(path, value)
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert "s3cret" not in said
    return said.removeprefix(f"{path}: ")


class TestRefusals:
    @promise(
        "A kubeconfig setting that can't be honoured is rejected, insecure-skip-tls-verify included.",
        of="safety",
        no_cluster="only a file is read",
    )
    @pytest.mark.parametrize(
        ("cluster", "said"),
        [
            pytest.param(
                {"insecure-skip-tls-verify": True}, f".insecure-skip-tls-verify: {VERIFIED}", id="not verified"
            ),
            pytest.param(
                {"server": "http://localhost:8001"},
                ".server: does not begin with https://; the API server is always spoken to in TLS",
                id="http",
            ),
            pytest.param({"server": ""}, ".server: is missing or empty", id="no server"),
            ({"server": "https://h:x"}, ".server: is not a URL; expected https://HOST:PORT"),
            ({"server": "https://me:s3cret@h"}, ".server: is not of the form https://HOST:PORT/PATH"),
            pytest.param(
                {"server": "https://bücher.example"}, ".server is not a host: 'bücher.example'", id="no ASCII"
            ),
            ({"server": "https://h/a b"}, ".server: there are characters in its path that a URL can't have"),
        ],
    )
    def test_of_a_cluster_say_where_what_and_what_to_do(self, path: Path, cluster: Config, said: str) -> None:
        assert refused(path, config(cluster=cluster)) == f"clusters[k].cluster{said}"

    @promise(
        "A kubeconfig setting that can't be honoured is rejected, insecure-skip-tls-verify included.",
        of="safety",
        no_cluster="only a file is read",
    )
    @pytest.mark.parametrize(
        ("user", "said"),
        [
            pytest.param({"username": "me", "password": "s3cret"}, f".username: {PASSWORD}", id="user"),
            pytest.param({"password": "s3cret"}, f".password: {PASSWORD}", id="password"),
            pytest.param({"token": "t", "as": "you"}, f".as: {IMPERSONATION}", id="as"),
            pytest.param({"token": "t", "as-groups": ["g"]}, f".as-groups: {IMPERSONATION}", id="group"),
            pytest.param({"auth-provider": {"name": "gcp"}}, f".auth-provider: {PROVIDER}", id="auth-provider"),
            pytest.param({}, f": {NOTHING}", id="no credentials"),
            pytest.param({"token": ""}, f": {NOTHING}", id="an empty token"),
            pytest.param({"client-certificate-data": b64("x")}, f".client-key: {PAIR}", id="no key"),
            pytest.param({"client-key": "me.key"}, f".client-certificate: {PAIR}", id="no certificate"),
            pytest.param(
                {"client-certificate-data": "%", "client-key-data": "%"},
                ".client-certificate-data: is not base64 of PEM",
                id="no base64",
            ),
            pytest.param(
                {**CERTIFICATE, "exec": {"command": "x"}},
                ".exec: stands beside a client certificate; remove one of the two",
                id="two ways",
            ),
            pytest.param({"token": 12345}, f".token: {TEXT}", id="12345"),
            pytest.param(
                {"token": "s3cret words"}, f".token does not hold a bearer token: {CHARACTERS}", id="words"
            ),
        ],
    )
    def test_of_a_user_say_where_what_and_what_to_do(self, path: Path, user: Config, said: str) -> None:
        assert refused(path, config(user=user)) == f"users[u].user{said}"

    @pytest.mark.parametrize(
        ("value", "said"),
        [
            pytest.param(
                config(context={"cluster": "other"}),
                'clusters: no "other", which contexts[c].context.cluster names; there are: k',
                id="no such cluster",
            ),
            (config(context={"user": ""}), "contexts[c].context.user: is missing or empty"),
            pytest.param({**config(), "current-context": ""}, NO_CONTEXT, id="no current-context"),
            ({**config(), "current-context": "d"}, 'contexts: no "d", which current-context names; there are: c'),
            ({**config(), "users": None}, 'users: no "u", which contexts[c].context.user names; there are: none'),
            ({**config(), "clusters": {}}, "clusters: expected a list, got named fields"),
            pytest.param({**config(), "users": ["u"]}, "users[0]: expected named fields, got text", id="a text"),
            pytest.param("- a list", "expected named fields, got a list", id="a list"),
            pytest.param("", NO_CONTEXT, id="empty"),
            pytest.param("a: s3cret: c", "line 1, column 10: not valid YAML", id="broken YAML"),
            pytest.param("a: *s3cret", "line 1, column 4: not valid YAML", id="a broken alias"),
            pytest.param("a: !!python/object:x {}", "line 1, column 4: not valid YAML", id="a Python object"),
            pytest.param("\x00s3cret", "neither valid YAML nor JSON", id="no text"),
        ],
    )
    def test_of_a_file_say_where_what_and_what_to_do(self, path: Path, value: Config | str, said: str) -> None:
        assert refused(path, value) == said

    def test_a_context_that_is_named_from_outside(self, path: Path) -> None:
        with pytest.raises(ConfigError, match='contexts: no "d", which MPIRT_CONTEXT names; there are: c'):
            read(path, config(), context="d")
