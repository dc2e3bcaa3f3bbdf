"""The small parts: deadlines, questions, the handshake, what is left of a foreign text, names to addresses."""

from __future__ import annotations

import resource
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from mpirt.errors import ConfigError, MpirtError, PeerError, Unreachable, one_line
from mpirt.fields import FileFields as Fields
from mpirt.kubeapi.access.credentials import Certificate, Credentials, PemText, Secret, StoredCredentials
from mpirt.kubeapi.access.steps import Deadline, run
from mpirt.kubeapi.request.answers import Failure, TimedOut, failure_error, read_failure, status_failure
from mpirt.kubeapi.request.asks import get_pod, list_pods
from mpirt.kubeapi.request.dial import resolve
from mpirt.kubeapi.request.http1 import Head
from mpirt.kubeapi.request.stream import Address
from mpirt.kubeapi.request.tls import Plain, Tls, tls_context
from mpirt.kubeapi.request.websocket import accepted_protocol, new_key, upgrade_headers


class TestDeadline:
    def test_counts_down_to_nothing_and_no_further(self) -> None:
        clock = [50.0]
        deadline = Deadline(2.0, clock=lambda: clock[0])

        seen = []
        for moment in (50.0, 51.5, 52.0, 60.0):
            clock[0] = moment
            seen.append((deadline.left(), deadline.passed()))

        assert seen == [(2.0, False), (0.5, False), (0.0, True), (0.0, True)]

    @pytest.mark.parametrize(("seconds", "left"), [(1.0, 1.0), (5.0, 2.0)])
    def test_of_a_step_never_comes_after_the_whole(self, seconds: float, left: float) -> None:
        assert Deadline(2.0, clock=lambda: 50.0).within(seconds).left() == left

    @pytest.mark.parametrize(("seconds", "text"), [(30.0, "30 s"), (0.399, "0.4 s"), (120.0, "120 s")])
    def test_reads_as_people_say_it(self, seconds: float, text: str) -> None:
        assert str(Deadline(seconds)) == text


class TestAsks:
    def test_leave_out_what_is_not_wanted(self) -> None:
        assert list_pods("ml").target == "/api/v1/namespaces/ml/pods"

    def test_hold_what_is_wanted(self) -> None:
        target = list_pods("ml", labels="a=b,c in (d)", limit=5, after="t/=").target

        assert target.partition("?")[2] == "labelSelector=a%3Db%2Cc%20in%20%28d%29&limit=5&continue=t%2F%3D"


class TestForeignText:
    @pytest.mark.parametrize(
        ("text", "line"),
        [
            pytest.param("a\n b\t\tc\r\n", "a b c", id="lines"),
            pytest.param("\x1b]0;x\x07 \u202eabc\u0000", "]0;x abc", id="what a terminal would obey"),
            pytest.param("x" * 256, "x" * 256, id="just short enough"),
            pytest.param("x" * 257, "x" * 253 + "...", id="too long"),
        ],
    )
    def test_becomes_one_line(self, text: str, line: str) -> None:
        assert one_line(text) == line


class TestFailures:
    def test_of_a_watch_have_their_code_in_the_status(self) -> None:
        failure = status_failure({"kind": "Status", "code": 500, "reason": "InternalError", "message": "m"})

        assert failure == Failure(500, "InternalError", "m", None, is_status=True)

    def test_may_be_as_odd_as_they_like(self) -> None:
        assert status_failure({"code": "x", "reason": 1, "message": []}) == Failure(
            0, "", "", None, is_status=True
        )

    @pytest.mark.parametrize(
        ("body", "is_status"),
        [
            pytest.param(b'{"kind":"Status"}', True, id="a Status"),
            pytest.param(b'{"kind":"Pod"}', False, id="a Pod"),
            pytest.param(b"[]", False, id="a list"),
            pytest.param(b"[" * 9999, False, id="a deep hole"),
            pytest.param(b"", False, id="nothing"),
        ],
    )
    def test_know_a_status_when_they_see_one(self, body: bytes, is_status: bool) -> None:  # noqa: FBT001  a column
        assert read_failure(Head(400, {}, keeps_alive=True), body).is_status is is_status

    @pytest.mark.parametrize("status", [0, 299, 418, 599])
    def test_of_any_status_have_an_error(self, status: int) -> None:
        error = failure_error(Failure(status, "", "", None, is_status=False), get_pod("ml", "w-0"), origin="{odd}")

        assert isinstance(error, MpirtError)
        assert f"({status})" in str(error)


KEY = "dGhlIHNhbXBsZSBub25jZQ=="
GOOD = {
    "upgrade": "WebSocket",
    "connection": "keep-alive, Upgrade",
    "sec-websocket-accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
    "sec-websocket-protocol": "v4.channel.k8s.io",
}


class TestTheHandshake:
    """The key and its answer are RFC 6455's own example."""

    def test_asks_for_what_is_spoken(self) -> None:
        assert dict(upgrade_headers(KEY, ["a", "b"])) == {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": KEY,
            "Sec-WebSocket-Protocol": "a, b",
        }

    def test_has_a_key_of_16_bytes(self) -> None:
        assert new_key(b"the sample nonce") == KEY

    def test_settles_on_a_protocol(self) -> None:
        head = Head(101, GOOD, keeps_alive=True)

        assert accepted_protocol(head, KEY, ["v5.channel.k8s.io", "v4.channel.k8s.io"]) == "v4.channel.k8s.io"

    @pytest.mark.parametrize(
        ("header", "value", "text"),
        [
            ("upgrade", "h2c", "not a WebSocket"),
            ("connection", "close", "not a WebSocket"),
            ("sec-websocket-accept", KEY, "not the answer to our key"),
            ("sec-websocket-extensions", "permessage-deflate", "extension that was not offered"),
            ("sec-websocket-protocol", "", "chose the sub-protocol ''; offered: v4.channel.k8s.io"),
            ("sec-websocket-protocol", "v5.channel.k8s.io", "offered: v4.channel.k8s.io"),
        ],
    )
    def test_takes_nothing_else_for_a_yes(self, header: str, value: str, text: str) -> None:
        with pytest.raises(PeerError, match=text):
            accepted_protocol(Head(101, {**GOOD, header: value}, keeps_alive=True), KEY, ["v4.channel.k8s.io"])


class TestAddresses:
    @pytest.mark.parametrize(
        ("host", "address"),
        [
            ("127.0.0.1", Address(socket.AF_INET, ("127.0.0.1", 6443))),
            ("::1", Address(socket.AF_INET6, ("::1", 6443, 0, 0))),
        ],
    )
    def test_that_are_numbers_are_not_looked_up(self, host: str, address: Address) -> None:
        def never(host: str, port: int) -> Sequence[Address]:
            raise AssertionError(host, port)

        assert run(resolve(host, 6443, Deadline(1.0), what="the name", look_up=never)) == [address]

    def test_of_names_are_looked_up(self) -> None:
        address = Address(socket.AF_INET, ("10.0.0.1", 6443))

        asked = []

        def look_up(host: str, port: int) -> Sequence[Address]:
            asked.append((host, port))
            return [address]

        assert run(resolve("api.example", 6443, Deadline(20.0), what="the name", look_up=look_up)) == [address]
        assert asked == [("api.example", 6443)]

    def test_of_this_machine_need_no_network(self) -> None:
        assert Address(socket.AF_INET, ("127.0.0.1", 6443)) in run(
            resolve("localhost", 6443, Deadline(20.0), what="the name")
        )

    @pytest.mark.parametrize(
        ("error", "text"),
        [
            (socket.gaierror(-2, "Name or service not known"), "can't be resolved: Name or service not known"),
            (UnicodeError("label too long"), "can't be resolved: not a usable name"),
        ],
    )
    def test_that_there_are_none_of_is_said(self, error: Exception, text: str) -> None:
        def fails(host: str, port: int) -> Sequence[Address]:
            raise error

        with pytest.raises(Unreachable, match=text):
            run(resolve("api.example", 6443, Deadline(20.0), what="the name", look_up=fails))

    def test_a_name_for_which_there_is_no_thread_leaves_no_descriptor(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def start(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", start)
        before = len(list(Path("/proc/self/fd").iterdir()))

        with pytest.raises(Unreachable, match="can't be resolved: can't start new thread"):
            run(resolve("api.example", 6443, Deadline(1.0), what="the name"))
        assert len(list(Path("/proc/self/fd").iterdir())) == before

    def test_of_a_name_server_that_is_silent_are_not_waited_for(self) -> None:
        never = threading.Event()

        def waits(host: str, port: int) -> Sequence[Address]:
            never.wait(60)
            return []

        with pytest.raises(TimedOut, match=r"the name was not resolved within 0\.2 s; is DNS up\?"):
            run(resolve("api.example", 6443, Deadline(0.2), what="the name", look_up=waits))

        never.set()


class TestAuthorities:
    @pytest.mark.parametrize("text", ["", "not PEM"])
    def test_that_are_none_are_named_by_their_field(self, text: str) -> None:
        with pytest.raises(ConfigError, match="certificate-authority-data is not a CA certificate in PEM form"):
            tls_context(PemText(Secret(text), "certificate-authority-data"), None)


class TestTheContext:
    def test_is_that_of_the_ssl_module_but_for_what_is_said(self) -> None:
        ours, theirs = tls_context(None, None), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        theirs.minimum_version = ssl.TLSVersion.TLSv1_2
        theirs.verify_flags &= ~ssl.VERIFY_X509_STRICT
        theirs.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN

        assert told(ours) == told(theirs)
        assert (ours.check_hostname, ours.verify_mode) == (True, ssl.CERT_REQUIRED)

    def test_is_of_no_use_without_a_name_to_verify(self) -> None:
        with closing(socket.socket()) as plain, pytest.raises(ValueError, match="cannot be an empty string"):
            Tls(tls_context(None, None), Plain(plain), "")

    def test_that_cannot_be_given_a_certificate_says_what_it_lacks(self) -> None:
        certificate = Certificate("a chain", Secret("a key"), "client-certificate-data")

        with no_descriptor_left(), pytest.raises(ConfigError) as caught:
            tls_context(None, certificate)

        assert str(caught.value) == (
            "client-certificate-data and its key can't be handed to TLS by a file in memory: Too many open files; "
            "it takes memfd_create, /proc and a descriptor that is free"
        )


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """A process that may open nothing more."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def told(context: Any) -> dict[str, object]:
    """All that a context has to say about itself."""
    names = "check_hostname maximum_version minimum_version options post_handshake_auth protocol security_level "
    names += "verify_flags verify_mode"
    settings = {name: int(getattr(context, name)) for name in names.split()}
    return {**settings, "ciphers": [cipher["name"] for cipher in context.get_ciphers()]}


class TestSecrets:
    def test_are_equal_when_their_text_is_and_never_shown(self) -> None:
        secret = Secret("s3cret")

        assert (secret == Secret("s3cret"), secret == Secret("other"), secret == "s3cret") == (True, False, False)
        assert {secret: 1}[Secret("s3cret")] == 1
        assert (repr(secret), str(secret), secret.reveal()) == ("Secret(...)", "Secret(...)", "s3cret")

    def test_may_be_absent(self) -> None:
        source = StoredCredentials()
        source.renew(Credentials())

        assert run(source.credentials(Deadline(1.0))).token is None


class TestFields:
    def test_that_are_missing_are_empty(self) -> None:
        fields = Fields({}, file="f")

        assert (fields.text("a"), fields.flag("a"), fields.rows("a"), fields.texts("a")) == ("", None, [], [])
        assert fields.table("a").raw("b") is None

    @pytest.mark.parametrize("values", [{}, {"a": ""}], ids=["missing", "empty"])
    def test_a_field_that_is_needed_is_neither_missing_nor_empty(self, values: dict[str, str]) -> None:
        with pytest.raises(ConfigError) as caught:
            Fields(values, file="f", path="users").needed("a")

        assert str(caught.value) == "f: users.a: is missing or empty"

    @pytest.mark.parametrize(
        ("value", "kind"),
        [
            (None, "nothing"),
            (True, "true or false"),
            (1, "a number"),
            (1.5, "a number"),
            ([], "a list"),
            ("x", "text"),
            (b"x", "something else"),
            ({1: 2}, "named fields"),
        ],
    )
    def test_that_are_of_another_kind_are_named_without_their_value(self, value: object, kind: str) -> None:
        with pytest.raises(ConfigError) as caught:
            Fields(value, file="f", path="a")

        assert str(caught.value) == f"f: a: expected named fields, got {kind}"

    @pytest.mark.parametrize(("least", "most"), [(0, 9), (99999, 99999)])
    def test_numbers_out_of_range_are_not_shown(self, least: int, most: int) -> None:
        with pytest.raises(ConfigError, match=rf"^f: pin: must be at (least|most) {most}, got a number$"):
            Fields({"pin": 1234}, file="f").number("pin", least=least, most=most)
