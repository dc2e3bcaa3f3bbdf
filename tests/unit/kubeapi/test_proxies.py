"""Which proxy leads to an API server: HTTPS_PROXY, NO_PROXY and proxy-url, as kubectl reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from mpirt.errors import ConfigError
from mpirt.kubeapi.access.credentials import Secret
from mpirt.kubeapi.access.endpoint import Proxy, environment_proxy, in_cluster
from mpirt.kubeapi.access.kubeconfig import from_kubeconfigs
from mpirt.kubeapi.access.proxies import is_excluded, read_proxy
from tests.unit.kubeapi.plugins import config

ENVIRON = {"HTTPS_PROXY": "http://proxy.example:3128"}


class TestAUrl:
    @pytest.mark.parametrize(
        ("text", "url"),
        [
            pytest.param("http://p.example:3128", "http://p.example:3128", id="http"),
            pytest.param("https://p.example:3129/", "https://p.example:3129", id="https"),
            pytest.param("p.example:3128", "http://p.example:3128", id="no scheme"),
            pytest.param("http://p.example", "http://p.example:80", id="the port of http"),
            pytest.param("https://p.example", "https://p.example:443", id="the port of https"),
            pytest.param("http://[fd00::1]:3128", "http://[fd00::1]:3128", id="IPv6"),
            pytest.param("HTTP://me:secret@P.example:3128", "http://p.example:3128", id="a user"),
        ],
    )
    def test_is_shown_without_its_user(self, text: str, url: str) -> None:
        assert read_proxy(text, "HTTPS_PROXY").url == url

    def test_holds_user_and_password_as_they_were_quoted(self) -> None:
        proxy = read_proxy("http://me:p%40ss%3A@p.example:3128", "HTTPS_PROXY")

        # me:p@ss:
        assert proxy.authorization == Secret("bWU6cEBzczo=")
        assert "bWU6" not in repr(proxy)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            pytest.param("socks5://p.example:1080", "SOCKS proxies are not supported", id="socks5"),
            pytest.param("ftp://s3cret@p.example", "not the URL of a proxy", id="another scheme"),
            pytest.param("http://s3cret@p.example:port", "not the URL of a proxy", id="no port"),
            pytest.param("http://s3cret@p.example:0", "not the URL of a proxy", id="port 0"),
            pytest.param("http://", "not the URL of a proxy", id="no host"),
            pytest.param("http://s3cret@p example", "not the URL of a proxy", id="a blank"),
        ],
    )
    def test_that_is_none_is_named_by_its_origin_only(self, text: str, said: str) -> None:
        with pytest.raises(ConfigError, match=f"^HTTPS_PROXY: {said}") as caught:
            read_proxy(text, "HTTPS_PROXY")

        assert "s3cret" not in str(caught.value)


class TestNoProxy:
    @pytest.mark.parametrize(
        ("host", "excluded"),
        [
            pytest.param("api.example", "api.example", id="host"),
            pytest.param("API.example.", "api.Example", id="host in another case"),
            pytest.param("api.example", "other, api.example ,", id="one of several"),
            pytest.param("api.example", "example", id="domain"),
            pytest.param("api.example", ".example", id="domain with a dot"),
            pytest.param("api.example", "*.example", id="domain with a star"),
            pytest.param("api.example", "*", id="everything"),
            pytest.param("api.example", "api.example:6443", id="host and port"),
            pytest.param("api.example", ".example:6443", id="domain and port"),
            pytest.param("10.96.0.1", "10.96.0.1", id="IPv4"),
            pytest.param("10.96.0.1", "10.96.0.1:6443", id="IPv4 and port"),
            pytest.param("10.96.0.1", "10.0.0.0/8", id="IPv4 network"),
            pytest.param("10.96.0.1", "10.96.0.1/32", id="IPv4 network of one"),
            pytest.param("fd00::1", "fd00:0::1", id="IPv6"),
            pytest.param("fd00::1", "[fd00::1]:6443", id="IPv6 and port"),
            pytest.param("fd00::1", "fd00::/8", id="IPv6 network"),
            pytest.param("localhost", "", id="localhost always"),
            pytest.param("127.8.0.1", "", id="IPv4 loopback always"),
            pytest.param("::1", "", id="IPv6 loopback always"),
        ],
    )
    def test_excludes(self, host: str, excluded: str) -> None:
        assert is_excluded(host, 6443, excluded)

    @pytest.mark.parametrize(
        ("host", "excluded"),
        [
            pytest.param("api.example", "", id="nothing"),
            pytest.param("api.example", "pi.example", id="the end of a label"),
            pytest.param("example", ".example", id="the domain itself, with a dot"),
            pytest.param("api.example", "api.example:443", id="another port"),
            pytest.param("api.example", "api.example.org", id="a longer name"),
            pytest.param("api.example", "10.0.0.0/8", id="a network, for a name"),
            pytest.param("10.96.0.1", "10.97.0.0/16", id="another network"),
            pytest.param("10.96.0.1", "10.96.0.1:443", id="IPv4 and another port"),
            pytest.param("10.96.0.1", "96.0.1", id="the end of a number"),
            pytest.param("10.96.0.1", "fd00::/8", id="a network of the other family"),
            pytest.param("10.96.0.1", "10.0.0.0/33, 10.0.0.0/x, /8", id="what is no network"),
        ],
    )
    def test_does_not_exclude(self, host: str, excluded: str) -> None:
        assert not is_excluded(host, 6443, excluded)


class TestTheEnvironment:
    @pytest.mark.parametrize(
        ("environ", "host"),
        [
            pytest.param({"HTTPS_PROXY": "a:1", "https_proxy": "b:1"}, "a", id="upper case first"),
            pytest.param({"HTTPS_PROXY": "", "https_proxy": "b:1"}, "b", id="lower case"),
        ],
    )
    def test_names_a_proxy(self, environ: dict[str, str], host: str) -> None:
        proxy = environment_proxy(environ, "api.example", 6443)

        assert proxy is not None
        assert proxy.host == host

    @pytest.mark.parametrize(
        "environ",
        [
            pytest.param({}, id="nothing"),
            pytest.param({"HTTP_PROXY": "a:1", "ALL_PROXY": "a:1"}, id="for others"),
            pytest.param({**ENVIRON, "NO_PROXY": "api.example"}, id="NO_PROXY"),
            pytest.param({**ENVIRON, "no_proxy": "api.example"}, id="no_proxy"),
            pytest.param({"HTTPS_PROXY": "socks5://a", "NO_PROXY": "*"}, id="one that is not used"),
        ],
    )
    def test_names_none(self, environ: dict[str, str]) -> None:
        assert environment_proxy(environ, "api.example", 6443) is None

    @pytest.mark.parametrize(("excluded", "is_used"), [("", True), ("10.0.0.0/8", False)])
    def test_counts_in_a_pod_too(self, tmp_path: Path, excluded: str, is_used: bool) -> None:  # noqa: FBT001  a column
        (tmp_path / "namespace").write_text("ml")
        environ = {**ENVIRON, "NO_PROXY": excluded, "KUBERNETES_SERVICE_HOST": "10.96.0.1"}

        endpoint = in_cluster(environ, service_account=str(tmp_path))

        assert (endpoint.proxy is not None) is is_used
        assert endpoint.route == "10.96.0.1:443" + " through the proxy http://proxy.example:3128" * is_used


def proxy_of(folder: Path, environ: dict[str, str], **cluster: Any) -> Proxy | None:
    path = folder / "config"
    path.write_text(yaml.safe_dump(config(cluster=cluster)))
    return from_kubeconfigs([str(path)], environ).proxy


class TestAKubeconfig:
    def test_goes_before_the_environment(self, tmp_path: Path) -> None:
        environ = {**ENVIRON, "NO_PROXY": "*"}

        proxy = proxy_of(tmp_path, environ, **{"proxy-url": "http://own.example:1"})

        assert proxy == Proxy("http", "own.example", 1, None, f"{tmp_path}/config: clusters[k].cluster.proxy-url")

    def test_without_a_proxy_leaves_it_to_the_environment(self, tmp_path: Path) -> None:
        proxy = proxy_of(tmp_path, ENVIRON)

        assert proxy is not None
        assert (proxy.url, proxy.origin) == ("http://proxy.example:3128", "HTTPS_PROXY")

    @pytest.mark.parametrize(
        ("url", "said"),
        [
            pytest.param("socks5://own.example:1080", "SOCKS proxies are not supported", id="socks5"),
            pytest.param("own.example:1", "no scheme; expected http://HOST:PORT", id="no scheme"),
        ],
    )
    def test_may_ask_for_what_is_not_supported(self, tmp_path: Path, url: str, said: str) -> None:
        with pytest.raises(ConfigError, match=rf"clusters\[k\]\.cluster\.proxy-url: {said}"):
            proxy_of(tmp_path, {}, **{"proxy-url": url})
