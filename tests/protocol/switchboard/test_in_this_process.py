"""A switchboard in the process of the test, whose steps can be counted (CONTRIBUTING.md says how), or broken."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from mpirt.rsh.switchboard.board import Switchboard
from tests.protocol.switchboard.agents import Agent, Command
from tests.protocol.switchboard.yard import Yard


@contextmanager
def _beside(agent: Agent) -> Iterator[Command]:
    """What becomes of a command that is handed over beside the switchboard."""
    ended = threading.Thread(target=lambda: agent.hand_over().end())
    ended.start()
    yield agent.command
    ended.join()


def _run(yard: Yard, commands: Sequence[Command]) -> None:
    board = Switchboard()
    yard.place.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(yard.place / "socket"))
        listener.listen()
        for command in commands:
            agent = Agent(yard.place, command)
            board.let_in(listener.accept()[0])
            with _beside(agent):
                board.serve()


def test_commands_are_run_one_after_the_other(yard: Yard) -> None:
    commands = [yard.command(f"echo {number}") for number in range(9)]

    _run(yard, commands)

    assert [(one.code, bytes(one.output)) for one in commands] == [(0, b"%d\n" % number) for number in range(9)]


def test_a_command_gives_up_in_time_where_there_is_no_thread_for_its_api_servers_name(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def start_no_resolver(self: threading.Thread) -> None:
        if self.name.startswith("resolve"):
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", start_no_resolver)
    config = json.loads(yard.server.kubeconfig(yard.folder / "named").read_text())
    config["clusters"][0]["cluster"]["server"] = "https://nowhere.invalid:6443"
    path = yard.folder / "named/kubeconfig"
    path.write_text(json.dumps(config))
    command = yard.command("true", on="w-9", MPIRT_WAIT="2", KUBECONFIG=str(path))

    _run(yard, [command])

    assert command.code == 243


def test_a_command_that_waits_ends_with_the_watch_if_that_has_an_internal_error(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No server can make an internal error to order.
    def fail(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("mpirt.kubeapi.watch.link.WatchLink.step", fail)
    command = yard.command("true", on="w-9", MPIRT_WAIT="60")

    _run(yard, [command])

    assert command.code == 255
