"""
What MPIRT_LOG=debug shows: one line for what happens to a session and for what it does, with the seconds since
the start.

Owns: the words. Nothing that a command, its environment, its stdin or a token may hold stands in them: of bytes
there are only numbers.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress

from mpirt.kubeapi.access.endpoint import Endpoint
from mpirt.rsh.pod.facts import Pod
from mpirt.rsh.session import events
from mpirt.rsh.session.machine import State

_STDERR = 2


def complain(text: str) -> None:
    """Write into the switchboard's own log. A disk that is full must not end a command."""
    with suppress(OSError):
        os.write(_STDERR, text.encode(errors="replace"))


def complain_of(error: Exception) -> None:
    """Log an unexpected error with its traceback."""
    complain("".join(traceback.format_exception(error)))


class Log:
    """The lines of one session."""

    __slots__ = ("_begin", "_bytes", "_state")

    def __init__(self, begin: float) -> None:
        self._begin = begin
        self._bytes = {"received": 0, "sent": 0, "read": 0}
        self._state: State | None = None

    def place(self, pod: str, namespace: str, endpoint: Endpoint, now: float) -> str:
        """The first line: where the command is to run, and how it was found out."""
        return self.line(f"pod {pod} in namespace {namespace} at {endpoint.route}, by {endpoint.origin}", now)

    def line(self, text: str, now: float) -> str:
        """A line out of its text."""
        return f"[{now - self._begin:8.3f}] {text}"

    def lines(
        self, event: events.Event, actions: Sequence[events.Action], state: State, now: float
    ) -> Iterator[str]:
        """What is worth telling of an event, of the state that it leads to, and of what is done about it."""
        said = [_of_the_connection(event) or _of_ours(event) or _of_the_pod(event)]
        self._count(event, actions)
        if state is not self._state:
            self._state = state
            said.append(f"state: {state.value}")
        said += [self._action(action) for action in actions]
        return (self.line(text, now) for text in said if text)

    def _count(self, event: events.Event, actions: Sequence[events.Action]) -> None:
        counted = self._bytes
        match event:
            case events.Received(message):
                counted["received"] += len(message)
            case events.StdinRead(data):
                counted["read"] += len(data)
        counted["sent"] += sum(len(action.message) for action in actions if isinstance(action, events.Send))

    def _action(self, action: events.Action) -> str:
        words = ""
        match action:
            case events.Finish(code, line):
                counted = ", ".join(f"{number} {what}" for what, number in self._bytes.items())
                words = f"finish: code {code}{': ' if line else ''}{line} (bytes: {counted} from stdin)"
            case events.Dial(protocol, container, seconds):
                words = f"dial: {protocol}, container {container or 'not named'}, for {seconds:.0f} s at most"
            case events.WatchPod():
                words = "watch the pod"
            case events.LookAtPod():
                words = "look at the pod"
            case events.Note(line):
                words = line
            case events.HangUp():
                words = "hang up"
        return words


def _of_the_connection(event: events.Event) -> str:
    match event:
        case events.Opened(protocol):
            return f"open: {protocol}"
        case events.NotOpened(error):
            return f"not open: {error}"
        case events.Closed(how):
            return f"closed: {how}"
    return ""


def _of_ours(event: events.Event) -> str:
    match event:
        case events.Signalled(name):
            return f"signal: {name}"
        case events.StdoutBroken():
            return "stdout can't be written any more"
        case events.Listening(listening):
            return "read on" if listening else "read no more: output waits for its reader"
        case events.StdinRead(b""):
            return "stdin: its end"
    return ""


def _of_the_pod(event: events.Event) -> str:
    match event:
        case events.PodFound(name):
            return f"the host is that of pod {name}"
        case events.PodSeen(pod):
            return f"pod: {_pod(pod)}"
        case events.PodGone():
            return "pod: there is none"
        case events.PodHidden(why) | events.ApiSilent(why):
            return f"the pod can't be looked at: {why}"
    return ""


def _pod(pod: Pod) -> str:
    words = [pod.phase, f"on {pod.node}", f"uid {pod.uid}"]
    words += ["being deleted"] if pod.deleting else []
    words += ["cut off"] if pod.cut_off else []
    return ", ".join(words)
