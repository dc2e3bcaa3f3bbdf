"""A switchboard in the process of the test, so that its steps can be counted: CONTRIBUTING.md says how."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

from mpirt.rsh.switchboard.board import Switchboard
from tests.protocol.switchboard.agents import Agent, Command
from tests.protocol.switchboard.yard import Yard


def _run(agent: Agent) -> Command:
    return agent.hand_over().end()


def test_commands_are_run_one_after_the_other(yard: Yard) -> None:
    board = Switchboard()
    yard.place.mkdir()
    with socket.socket(socket.AF_UNIX) as listener, ThreadPoolExecutor(1) as beside:
        listener.bind(str(yard.place / "socket"))
        listener.listen()
        for number in range(9):
            agent = Agent(yard.place, yard.command(f"echo {number}"))
            board.let_in(listener.accept()[0])
            ended = beside.submit(_run, agent)
            board.serve()

            command = ended.result()
            assert (command.code, bytes(command.output)) == (0, f"{number}\n".encode())
