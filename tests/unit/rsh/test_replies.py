"""What is told instead of running a command."""

from __future__ import annotations

import pytest

from mpirt.rsh.invocation.argv import Wants
from mpirt.rsh.invocation.replies import HELP, Reply, reply


class TestHelp:
    def test_it_is_the_answer_to_help(self) -> None:
        assert reply(Wants("help"), version="1.0", user="me") == Reply(0, stdout=HELP)

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
        assert reply(Wants("version"), version="1.0", user="me") == Reply(0, stdout="mpirt-rsh 1.0\n")

    def test_it_goes_where_that_of_ssh_goes(self) -> None:
        assert reply(Wants("V"), version="1.0", user="me") == Reply(0, stderr="mpirt-rsh 1.0\n")


class TestSettings:
    def test_they_are_printed_as_by_ssh(self) -> None:
        asked = Wants("G", host="worker-0.train", user="mpi", port="2222")

        assert reply(asked, version="1.0", user="me") == Reply(
            0, stdout="host worker-0.train\nuser mpi\nhostname worker-0.train\nport 2222\n"
        )

    def test_the_user_is_ours_where_none_was_named(self) -> None:
        assert "user me\n" in reply(Wants("G", host="w", port="22"), version="1.0", user="me").stdout


class TestSharedConnections:
    @pytest.mark.parametrize("command", ["stop", "exit"])
    def test_there_is_none_to_stop(self, command: str) -> None:
        assert reply(Wants(command, host="w"), version="1.0", user="me") == Reply(0)

    def test_a_check_finds_none(self) -> None:
        assert reply(Wants("check", host="w"), version="1.0", user="me") == Reply(
            255, stderr='mpirt-rsh: No ControlPath specified for "-O" command\n'
        )

    def test_a_check_finds_no_socket(self) -> None:
        assert reply(Wants("check", host="w", path="/tmp/a"), version="1.0", user="me") == Reply(
            255, stderr="mpirt-rsh: Control socket connect(/tmp/a): No such file or directory\n"
        )
