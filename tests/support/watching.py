"""
What becomes of an object, or of several, as the API server tells it.

Each of their states is kept with the moment at which it was received, so that what lies between two of them is the
time of who acted and not that of the kubectl which asks.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from testbed.ground import Namespace
from testbed.kube.errors import ClusterError
from testbed.kube.wait import Moment, until

_BEGINS_WITHIN = 30.0


@dataclass(frozen=True)
class State:
    """An object at a moment; `body` is the last of it where it was deleted."""

    moment: Moment
    deleted: bool
    body: dict[str, Any]

    @property
    def at(self) -> float:
        """By the monotonic clock."""
        return self.moment.time

    @property
    def uid(self) -> str:
        return str(self.body["metadata"]["uid"])

    @property
    def version(self) -> int:
        """Grows with every write to the cluster, whatever it is of."""
        return int(self.body["metadata"]["resourceVersion"])


class Watch:
    """All states of what is watched since the watch began, the first of them included."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.states: list[State] = []
        self._known: set[int] = set()
        self._argv = argv
        self._kubectl: subprocess.Popen[str] | None = None
        self._is_over = False
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()

    def wait(
        self,
        question: Callable[[State], bool],
        *,
        after: float = 0.0,
        within: float,
        what: str,
        instead: Callable[[], object] | None = None,
    ) -> State:
        """The first state after a moment of which it is true; the error tells what there is `instead`."""

        def found() -> State | None:
            may_go_on = self._reader.is_alive()
            state = next((state for state in self.states if state.at > after and question(state)), None)
            if state is None and not may_go_on:
                raise ClusterError(f"the watch ended before {what}")
            return state

        state = until(found, within=within, what=what, instead=instead)
        assert state is not None
        return state

    def end(self) -> None:
        """Watch no longer."""
        with self._lock:
            self._is_over = True
            if self._kubectl is not None:
                self._kubectl.terminate()
        self._reader.join(10)

    def _follow(self) -> None:
        """An API server may end a watch at any time; the next one begins with what there is then."""
        code = 0
        while code == 0:
            with self._lock:
                if self._is_over:
                    return
                self._kubectl = subprocess.Popen(self._argv, stdout=subprocess.PIPE, text=True)
            with self._kubectl as kubectl:
                assert kubectl.stdout is not None
                self._read(kubectl.stdout)
            code = kubectl.returncode

    def _read(self, stream: IO[str]) -> None:
        text = ""
        for line in stream:
            text += line
            # One line for each, or, by newer kubectls, one for each field.
            if line[:1] not in "{}" or not line.endswith("}\n"):
                continue
            said, text = json.loads(text), ""
            state = State(Moment.now(), said["type"] == "DELETED", said["object"])
            if state.version not in self._known:
                self._known.add(state.version)
                self.states.append(state)


@contextmanager
def watch(namespace: Namespace, kind: str, name: str = "", *, labels: str = "") -> Iterator[Watch]:
    """Watch an object, by its name, or several, by their labels; it may go and come back."""
    # Told a name, kubectl reads the object, then watches it and leaves out the first state that the watch tells:
    # a change between the two is lost. A list is watched from the version that was listed.
    which = f"--selector={labels}" if labels else f"--field-selector=metadata.name={name}"
    argv = namespace.kubectl.argv("get", kind, which, "--watch", "--output-watch-events", "--output=json")
    watching = Watch(argv)
    try:
        until(lambda: watching.states, within=_BEGINS_WITHIN, what=f"a first state of {kind} {which}")
        yield watching
    finally:
        watching.end()
