"""Every answer that is a no, and every answer that is none, has its error, its code and its line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpirt.errors import ExitCode, MpirtError, PeerError
from mpirt.kubeapi.request.answers import (
    ConnectionLost,
    Expired,
    Forbidden,
    NotFound,
    Overloaded,
    Redirected,
    Rejected,
    ServerFailed,
    Unauthorized,
)
from tests.apiserver.faults import Answer, Bare, Chunked, Fault, Hangup, Raw, Redirect, Status, Text, Then, head
from tests.apiserver.server import ApiServer
from tests.protocol.clients import ReadPod, Said

CODES: dict[type[MpirtError], ExitCode] = {
    **dict.fromkeys((Rejected, Expired), ExitCode.PEER),
    **dict.fromkeys((Overloaded, ServerFailed), ExitCode.UNREACHABLE),
    Unauthorized: ExitCode.REFUSED,
    NotFound: ExitCode.NO_POD,
}
MAY_NOT = 'may not read pod "w-0" in namespace "ml": the Role in namespace "ml" must hold get on pods'
BUSY = "the API server is overloaded or going away; try again"
REJECTS = "the API server rejects the request"
UNKNOWN = "the API server does not accept the credentials of the test's kubeconfig; have they expired?"
PAGE = Answer(404, b"<html>no such page, but your token was t0ken</html>", type="text/html")


class TestAnswersThatAreANo:
    @pytest.mark.parametrize(
        ("fault", "error", "said"),
        [
            pytest.param(Status(400, "BadRequest", "no host"), Rejected, f"{REJECTS} (400): no host", id="400"),
            pytest.param(
                Status(401, "", "Unauthorized"), Unauthorized, f"{UNKNOWN} (401): Unauthorized", id="401"
            ),
            pytest.param(Bare(401), Unauthorized, f"{UNKNOWN} (401)", id="401 bare"),
            pytest.param(Status(404, "NotFound", "gone"), NotFound, "not found (404): gone", id="404"),
            pytest.param(Text(404, "no pod"), NotFound, "not found (404): no pod", id="404 of a kubelet"),
            pytest.param(PAGE, NotFound, "not found (404)", id="404 page of a load balancer"),
            pytest.param(Status(409, "Conflict", "it is"), Rejected, f"{REJECTS} (409): it is", id="409"),
            pytest.param(Status(410, "Expired", "old"), Expired, "the list is out of date (410): old", id="410"),
            pytest.param(Status(429, "", "slow down"), Overloaded, f"{BUSY} (429): slow down", id="429"),
            (Text(500, 'no "worker"'), ServerFailed, 'the API server failed (500): no "worker"'),
            pytest.param(replace(PAGE, status=502), Overloaded, f"{BUSY} (502)", id="502"),
            pytest.param(replace(PAGE, status=503), Overloaded, f"{BUSY} (503)", id="503"),
            pytest.param(replace(PAGE, status=504), Overloaded, f"{BUSY} (504)", id="504"),
            pytest.param(Answer(201, b"{}"), Rejected, f"{REJECTS} (201)", id="201"),
            pytest.param(
                Status(400, "BadRequest", "two\nlines and \x1b[31mcolour\x07"),
                *(Rejected, f"{REJECTS} (400): two lines and [31mcolour"),
                id="what a terminal would obey",
            ),
        ],
    )
    def test_each_has_its_error_its_code_and_its_line(
        self,
        apiserver: ApiServer,
        read_pod: ReadPod,
        fault: Fault,
        error: type[MpirtError],
        said: str,
    ) -> None:
        apiserver.on("get", fault)

        assert Said(error, f'could not read pod "w-0" in namespace "ml": {said}').by(read_pod).code == CODES[error]

    @pytest.mark.parametrize(
        ("fault", "more"),
        [
            pytest.param(Status(403, "Forbidden", "no"), " (the API server says: no)", id="403"),
            pytest.param(Bare(403), "", id="403 bare"),
        ],
    )
    def test_a_missing_right_is_named(
        self, apiserver: ApiServer, read_pod: ReadPod, fault: Fault, more: str
    ) -> None:
        apiserver.on("get", fault)

        assert Said(Forbidden, f"{MAY_NOT}{more}").by(read_pod).code == ExitCode.REFUSED

    @pytest.mark.parametrize(
        ("given", "read"),
        [
            pytest.param("7", 7.0, id="seconds"),
            pytest.param("300", 30.0, id="more than a running command has"),
            pytest.param("9" * 5000, 30.0, id="no number that Python reads"),
            pytest.param("0.5", None, id="a fraction"),
            pytest.param("1e9", None, id="an exponent"),
            pytest.param("Wed, 21 Oct 2026 07:28:00 GMT", None, id="a date, which no API server sends"),
            pytest.param("-1", None, id="the past"),
            pytest.param("soon", None, id="a word"),
        ],
    )
    def test_retry_after_is_kept(
        self, apiserver: ApiServer, read_pod: ReadPod, given: str, read: float | None
    ) -> None:
        apiserver.on("get", Answer(429, headers=(("Retry-After", given),)))

        with pytest.raises(Overloaded) as caught:
            read_pod()

        assert caught.value.failure.retry_after == read

    @pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
    def test_a_redirect_is_never_followed(
        self, apiserver: ApiServer, elsewhere: ApiServer, read_pod: ReadPod, code: int
    ) -> None:
        apiserver.on("get", Redirect(elsewhere.url, code))

        with pytest.raises(Redirected, match=rf"redirect, which is never followed; .*\({code}\)"):
            read_pod()

        assert elsewhere.connections == 0


LONG_LINE = b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n"


CHUNKS = head(200, (("Transfer-Encoding", "chunked"),))


def sized(length: str) -> bytes:
    return head(200, (("Content-Length", length),))


class TestAnswersThatAreNone:
    @pytest.mark.parametrize(
        ("fault", "error", "part"),
        [
            pytest.param(Hangup(), ConnectionLost, "closed the connection without an answer", id="hangs up"),
            pytest.param(Hangup(Then.RESET), ConnectionLost, "the API server at 127.0.0.1", id="resets"),
            pytest.param(Raw(b"HTTP/1.1 2"), ConnectionLost, "in the middle of its answer", id="half a status"),
            (Raw(sized("99") + b'{"'), ConnectionLost, "in the middle of its answer"),
            pytest.param(Chunked((b'{"ki',), Then.CLOSE), ConnectionLost, "in the middle", id="no last chunk"),
            pytest.param(Raw(b"SSH-2.0-OpenSSH\r\n", Then.HANG), PeerError, "is not HTTP", id="another protocol"),
            pytest.param(Raw(b"\x00\xff" * 99, Then.HANG), PeerError, "is not HTTP", id="noise"),
            pytest.param(Raw(b"HTTP/1.1 20x OK\r\n\r\n"), PeerError, "first line is not HTTP", id="no status"),
            pytest.param(Raw(b"HTTP/1.9 200 OK\r\n\r\n"), PeerError, "first line is not HTTP", id="no version"),
            pytest.param(Raw(b"HTTP/1.1 200 OK\r\nword\r\n\r\n"), PeerError, "malformed header", id="no header"),
            (Raw(b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n"), PeerError, "malformed header"),
            (Answer(200, headers=(("Content-Encoding", "br"),)), PeerError, "compressed"),
            pytest.param(Raw(sized("-1"), Then.HANG), PeerError, "not a number", id="length below 0"),
            pytest.param(Raw(sized("5, 6"), Then.HANG), PeerError, "not a number", id="two lengths"),
            (Raw(head(200, (("Transfer-Encoding", "gzip, chunked"),)), Then.HANG), PeerError, "framed in a way"),
            pytest.param(
                Raw(head(200, (("Transfer-Encoding", "chunked"), ("Content-Length", "5"))), Then.HANG),
                PeerError,
                "framed in a way",
                id="two framings",
            ),
            pytest.param(Raw(CHUNKS + b"zz\r\n", Then.HANG), PeerError, "chunk size is not", id="no chunk size"),
            (Raw(CHUNKS + b"2\r\nabcd\r\n", Then.HANG), PeerError, "is longer"),
            pytest.param(Answer(200, b'{"kind": "Pod", "meta'), PeerError, "is not JSON", id="truncated JSON"),
            pytest.param(Answer(200, b""), PeerError, "is not JSON", id="empty body"),
            pytest.param(Answer(200, b"[1]"), PeerError, "not an object", id="a list"),
            pytest.param(Answer(200, b"[" * 100_000), PeerError, "is not JSON", id="a deep hole"),
        ],
    )
    def test_each_has_its_error_in_one_line(
        self, apiserver: ApiServer, read_pod: ReadPod, fault: Fault, error: type[MpirtError], part: str
    ) -> None:
        apiserver.on("get", fault)

        caught = Said(error, part=part).by(read_pod)

        assert apiserver.token not in str(caught)
