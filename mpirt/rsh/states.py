"""
The states of a session, and what takes it from one to another.

Owns: the table. What isn't in it can't happen: a peer that tries breaks the protocol.
"""

from __future__ import annotations

from mpirt.values import Enum


class State(Enum):
    """How far a session has come."""

    DIAL = "dial"
    """Nothing is open."""
    HELLO = "hello"
    """The connection is open, the wrapper was sent, its HELLO is awaited."""
    GO = "go"
    """GO was sent: from here on the command may be running."""
    RUNNING = "running"
    """The wrapper has started it."""
    DETACHED = "detached"
    """The connection is lost; a keeper in the pod holds the command, and is looked for."""
    TERMINATING = "terminating"
    """It was told to end."""
    EXITED = "exited"
    """Its end was reported; the rest of its output, and the server's word, are on their way."""
    DONE = "done"
    """There is nothing more to do."""


class Step(Enum):
    """What takes a session on."""

    OPEN = "the connection is open"
    FAIL = "the attempt has failed"
    HELLO = "the wrapper says HELLO"
    START = "the wrapper says START"
    LOSE = "the connection is lost"
    ATTACH = "the keeper is found again"
    TERMINATE = "the command is to end"
    EXIT = "the wrapper reports the end"
    FINISH = "there is an outcome"


TRANSITIONS: dict[tuple[State, Step], State] = {
    (State.DIAL, Step.OPEN): State.HELLO,
    (State.DIAL, Step.FAIL): State.DIAL,
    (State.HELLO, Step.FAIL): State.DIAL,
    (State.HELLO, Step.HELLO): State.GO,
    (State.GO, Step.START): State.RUNNING,
    (State.GO, Step.TERMINATE): State.TERMINATING,
    (State.RUNNING, Step.TERMINATE): State.TERMINATING,
    (State.TERMINATING, Step.START): State.TERMINATING,
    **{(state, Step.LOSE): State.DETACHED for state in (State.GO, State.RUNNING, State.TERMINATING)},
    (State.DETACHED, Step.ATTACH): State.GO,
    (State.DETACHED, Step.TERMINATE): State.DETACHED,
    (State.RUNNING, Step.EXIT): State.EXITED,
    (State.TERMINATING, Step.EXIT): State.EXITED,
    **{(state, Step.FINISH): State.DONE for state in State if state is not State.DONE},
}
