"""TLS is always verified: who may be the API server, and who may be its client."""

from __future__ import annotations

import ssl
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from mpirt.errors import ConfigError, PeerError, Refused
from mpirt.kubeapi.access.credentials import PemFile, PemText, Secret
from mpirt.kubeapi.access.endpoint import Endpoint
from mpirt.kubeapi.request.answers import Untrusted
from tests.apiserver.certificates import HOST, Authority, Pem
from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer
from tests.promises import promise
from tests.protocol.clients import Certificates, Connect, ReadPod, Rotating, endpoint_of, reading


def endpoint(server: ApiServer, *, host: str = HOST, ca: PemFile | PemText | None, name: str = "") -> Endpoint:
    source = Rotating(server.token)
    return Endpoint(host=host, port=server.port, ca=ca, source=source, origin="the test", server_name=name)


def encrypted(key: str) -> str:
    """The key as it is with a password on it."""
    private = load_pem_private_key(key.encode(), None)
    locked = BestAvailableEncryption(b"a password")
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked).decode()


def ca_of(server: ApiServer) -> PemText:
    return PemText(Secret(server.authority.ca), "certificate-authority-data")


class TestTheServer:
    @promise(
        "A server whose certificate is not the API server's gets no token and no request.",
        of="safety",
        no_cluster="it takes a false API server",
    )
    @pytest.mark.parametrize(
        ("identity", "problem"),
        [
            pytest.param(lambda authority: authority.expired, "certificate has expired", id="expired"),
            pytest.param(lambda authority: authority.wrong_ca, "unable to get local issuer certificate", id="CA"),
            pytest.param(lambda authority: authority.wrong_name, "IP address mismatch", id="name"),
        ],
    )
    def test_that_is_not_trusted_receives_no_request(
        self,
        apiserver: ApiServer,
        read_pod: ReadPod,
        identity: Callable[[Authority], ssl.SSLContext],
        problem: str,
    ) -> None:
        apiserver.identity = identity(apiserver.authority)

        with pytest.raises(Untrusted, match=f"is not the API server that the test's CA vouches for: .*{problem}"):
            read_pod()

        assert apiserver.requests == []

    def test_is_not_trusted_by_the_system(self, apiserver: ApiServer, connect: Connect) -> None:
        client = connect(endpoint(apiserver, ca=None))

        with pytest.raises(Untrusted, match="that the system's list of authorities vouches for"):
            reading(client)()

    def test_may_be_known_by_another_name(self, apiserver: ApiServer, connect: Connect) -> None:
        apiserver.identity = apiserver.authority.wrong_name
        apiserver.world.put(pod("w-0"))
        client = connect(endpoint(apiserver, ca=ca_of(apiserver), name="other.example"))

        assert reading(client)()["kind"] == "Pod"

    def test_may_be_named_instead_of_numbered(self, apiserver: ApiServer, connect: Connect) -> None:
        apiserver.world.put(pod("w-0"))
        client = connect(endpoint(apiserver, host="localhost", ca=ca_of(apiserver)))

        assert reading(client)()["kind"] == "Pod"

    def test_may_get_a_new_certificate_meanwhile(self, apiserver: ApiServer, read_pod: ReadPod) -> None:
        apiserver.world.put(pod("w-0"))
        apiserver.identity = apiserver.authority.expired
        with pytest.raises(Untrusted):
            read_pod()
        apiserver.identity = apiserver.authority.good

        assert read_pod()["kind"] == "Pod"

    def test_is_not_offered_http_2(self, apiserver: ApiServer, read_pod: ReadPod) -> None:
        apiserver.world.put(pod("w-0"))
        apiserver.identity.set_alpn_protocols(["h2", "http/1.1"])

        assert read_pod()["kind"] == "Pod"

    def test_must_speak_tls_1_2_at_least(self, apiserver: ApiServer, read_pod: ReadPod) -> None:
        with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
            apiserver.identity.maximum_version = ssl.TLSVersion.TLSv1_1

        with pytest.raises(PeerError, match=r"TLS with the API server at .* failed"):
            read_pod()


class TestTheClient:
    def test_may_show_a_certificate(self, apiserver: ApiServer, connect: Connect) -> None:
        apiserver.world.put(pod("w-0"))
        client = connect(endpoint_of(apiserver, Certificates(apiserver.authority.client())))

        assert reading(client)()["kind"] == "Pod"

    def test_shows_a_renewed_certificate_on_a_new_connection(self, apiserver: ApiServer, connect: Connect) -> None:
        apiserver.world.put(pod("w-0"))
        source = Certificates(apiserver.authority.client("first"), apiserver.authority.client("second"))
        client = connect(endpoint_of(apiserver, source))
        reading(client)()

        source.renew()
        for _ in range(2):
            reading(client)()

        assert apiserver.client_names == ["first", "second"]

    def test_reads_a_certificate_again_that_is_not_accepted(self, apiserver: ApiServer, connect: Connect) -> None:
        apiserver.world.put(pod("w-0"))
        source = Certificates(apiserver.authority.strange_client(), apiserver.authority.client("second"))

        reading(connect(endpoint_of(apiserver, source)))()

        assert apiserver.client_names == ["second"]

    def test_with_a_strangers_certificate_is_refused(self, apiserver: ApiServer, connect: Connect) -> None:
        source = Certificates(apiserver.authority.strange_client())
        client = connect(endpoint_of(apiserver, source))

        with pytest.raises(Refused, match="does not accept our client certificate"):
            reading(client)()

    @pytest.mark.parametrize(
        ("chain", "key"),
        [
            pytest.param("nothing", "nothing", id="no PEM"),
            pytest.param("ours", "other", id="another's key"),
            pytest.param("ours", "nothing", id="no key"),
            pytest.param("ours", "encrypted", id="a key that asks for a password"),
        ],
    )
    def test_with_half_a_certificate_opens_no_connection(
        self, apiserver: ApiServer, connect: Connect, chain: str, key: str
    ) -> None:
        ours, other = apiserver.authority.client(), apiserver.authority.client("other")
        words = {"nothing": "x", "ours": ours.chain, "other": other.key, "encrypted": encrypted(ours.key)}
        source = Certificates(Pem(words[chain], words[key]))
        client = connect(endpoint_of(apiserver, source))

        with pytest.raises(ConfigError, match="client-certificate-data and its key are not a certificate"):
            reading(client)()

        assert apiserver.connections == 0
