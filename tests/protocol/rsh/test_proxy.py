"""A proxy is never used: who counts on one is told so."""

from __future__ import annotations

from mpirt.errors import ExitCode
from tests.protocol.rsh.agent import Ground

_REMARK = "HTTPS_PROXY is set, but mpirt connects directly"
_SETTINGS = {"HTTPS_PROXY": "http://proxy.example:3128"}


def test_the_line_of_a_connection_that_fails_names_it(ground: Ground) -> None:
    ground.server.stop()

    ended = ground.run("-o", "ConnectionAttempts=1", "w-0", "true", env=_SETTINGS)

    assert ended.code == ExitCode.UNREACHABLE
    assert _REMARK in ended.line


def test_the_log_names_it(ground: Ground) -> None:
    ended = ground.run("w-0", "true", env={**_SETTINGS, "MPIRT_LOG": "debug"})

    assert ended.code == 0
    assert ended.lines[0].endswith(f"; {_REMARK}")


def test_otherwise_nothing_is_said_of_it(ground: Ground) -> None:
    ended = ground.run("w-0", "true", env=_SETTINGS)

    assert (ended.code, ended.errors) == (0, "")
