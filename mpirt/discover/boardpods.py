"""
The pods as a switchboard of this container has them, and the API server's in any doubt.

Owns: the question to the switchboard, and when the API server is asked instead.
"""

from __future__ import annotations

import json
import time

from mpirt import names
from mpirt.boards import protocol
from mpirt.boards.client import connect
from mpirt.boards.places import NotUsed, places
from mpirt.boards.protocol import CLUSTER_VARIABLES, FORM, Question, write_question
from mpirt.discover.pods import read_pod
from mpirt.errors import PeerError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mpirt.discover.pods import Pod
    from mpirt.discover.selection import Selection
    from mpirt.discover.source import Pods
    from mpirt.kubeapi.access.steps import Deadline

# A busy switchboard takes a tenth of it.
_SECONDS = 1.0


class BoardPods:
    """Asks the switchboard for a selection, and the API server where that does not answer for sure."""

    __slots__ = ("_api", "_container", "_environ", "_is_slow", "_namespace", "_tell", "_told")

    def __init__(
        self,
        environ: Mapping[str, str],
        namespace: str,
        api: Callable[[], Pods],
        *,
        container: str = "",
        tell: Callable[[str], None],
    ) -> None:
        """`api` gives the API server's pods. `tell` gets lines on where pods come from, if there is a choice."""
        self._environ, self._namespace, self._api = environ, namespace, api
        self._container, self._tell = container, tell
        self._told = ""
        self._is_slow = False

    def select(self, selection: Selection, deadline: Deadline) -> list[Pod]:
        """All pods of the selection as they are now, or an error; never some of them."""
        try:
            found = self._ask(selection.selectors, deadline)
        except _NotKnown as error:
            self._say(f"pods from the API server: {error}")
        else:
            if found is not None:
                self._say("pods from the switchboard")
                return [pod for pod in found if selection.holds(pod)]
        return self._api().select(selection, deadline)

    def named(self, name: str, deadline: Deadline) -> Pod | None:
        """One pod, always by the API server: it is asked for once, by who does not know its job."""
        return self._api().named(name, deadline)

    def _ask(self, selectors: tuple[str, ...], deadline: Deadline) -> list[Pod] | None:
        """None where there is no switchboard. Raises _NotKnown."""
        # One that is stopped would cost every question a second.
        if self._is_slow or self._environ.get(names.SWITCHBOARD_VARIABLE) == "off":
            return None
        try:
            folders = places(self._environ)
        except (UsageError, OSError):
            return None
        end = time.monotonic() + min(_SECONDS, deadline.left() / 2)
        given = {name: self._environ[name] for name in CLUSTER_VARIABLES if name in self._environ}
        question = write_question(Question(self._namespace, selectors, given))
        why: _NotKnown | None = None
        for folder in folders:
            try:
                answer = self._answer(folder, question, end)
            except _NotKnown as error:
                why = error
            else:
                if answer is not None:
                    return self._read(answer)
        if why is not None:
            raise why
        return None

    def _answer(self, folder: str, question: bytes, end: float) -> bytes | None:
        try:
            client = connect(folder, seconds=0)
        except NotUsed as error:
            raise _NotKnown(f"{folder} {error}") from error
        if client is None:
            return None
        try:
            request = protocol.frame(protocol.PODS_REQUEST, question)
            return client.ask(request, protocol.PODS, end - time.monotonic())
        except TimeoutError:
            self._is_slow = True
            raise _NotKnown(f"the switchboard does not answer within {_SECONDS:g} s") from None
        except (EOFError, OSError, PeerError) as error:
            raise _NotKnown(str(error) or "the switchboard has closed the connection") from error
        finally:
            client.close()

    def _read(self, answer: bytes) -> list[Pod]:
        try:
            found = json.loads(answer)
            if not isinstance(found, dict) or found.get("form") != FORM:
                raise _NotKnown("the switchboard is of another version of mpirt")
            pods = found.get("pods")
            if pods is None:
                raise _NotKnown(str(found.get("why")))
            return [read_pod(pod, container=self._container) for pod in pods]
        except (ValueError, TypeError, AttributeError, RecursionError, PeerError) as error:
            raise _NotKnown("the switchboard's answer can't be read") from error

    def _say(self, line: str) -> None:
        if line != self._told:
            self._told = line
            self._tell(line)


class _NotKnown(Exception):
    """Why the switchboard does not have the answer."""
