"""What is told instead of running a command."""

from __future__ import annotations

import importlib.metadata

import pytest

from mpirt.rsh.invocation.options import HELP, Reply, Wants, reply, version


class TestHelp:
    def test_it_is_the_answer_to_help(self) -> None:
        assert reply(Wants.HELP, version="1.0") == Reply(stdout=HELP)

    @pytest.mark.parametrize(
        "word",
        [
            *("-n", "-s", "-v", "-h", "--namespace", "--container", "--context", "--version", "ConnectTimeout"),
            *("ServerAliveInterval", "SendEnv", "SetEnv", "MPIRT_SHELL", "MPIRT_CONTEXT", "JOB-INDEX"),
        ],
    )
    def test_it_names_what_can_be_said(self, word: str) -> None:
        assert word in HELP

    def test_it_fits_a_terminal(self) -> None:
        assert max(map(len, HELP.splitlines())) <= 112


class TestTheVersion:
    def test_it_goes_to_stdout(self) -> None:
        assert reply(Wants.VERSION, version="1.0") == Reply(stdout="mpirt-rsh 1.0\n")

    def test_it_goes_where_that_of_ssh_goes(self) -> None:
        assert reply(Wants.SSH_VERSION, version="1.0") == Reply(stderr="mpirt-rsh 1.0\n")

    def test_it_is_that_of_the_package(self) -> None:
        assert version() == importlib.metadata.version("mpirt")

    def test_a_package_that_is_not_installed_has_none(self) -> None:
        assert version("no-such-package") == ""
