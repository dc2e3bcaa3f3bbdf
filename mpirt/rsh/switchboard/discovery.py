"""
The questions of mpirt-discover, as far as the switchboard's watches know the pods.

Owns: the interface of what makes hosts of pods, which mpirt/cli/switchboard.py hands in, because this package and
mpirt/discover do not know each other; and the rule that any doubt is a refusal: mpirt-discover then asks the API
server itself.
"""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from mpirt.rsh.switchboard import frames
from mpirt.rsh.watches.podquestions import NotKnown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mpirt.objects import Body
    from mpirt.rsh.switchboard.clusters import Clusters


class Question(ABC):
    """What one call of mpirt-discover asks for."""

    namespace: str
    """Empty: that of the cluster's configuration."""
    selectors: Sequence[str]
    environ: Mapping[str, str]
    """It identifies the cluster and the credentials."""

    @abstractmethod
    def answer(self, pods: Sequence[Any], namespace: str) -> bytes:
        """The payload of DISCOVERED, from all pods that the selectors find. Raises NotKnown."""


class Discovery(ABC):
    """What makes hosts of pods."""

    @abstractmethod
    def keep(self, pod: Body) -> Any:
        """What is kept of a pod that is watched: answer() gets it."""

    @abstractmethod
    def question(self, words: Sequence[str], environ: Mapping[str, str], pid: int) -> Question:
        """Read the command line of the process `pid`. Raises NotKnown."""


def ask(discovery: Discovery, clusters: Clusters, payload: bytes, pid: int, say: Callable[[bytes], None]) -> None:
    """
    Answer a DISCOVER_REQUEST, now or when all that has come on the watch is read. `say` gets the payload.

    Raises PeerError.
    """
    words, environ = frames.read_discover_request(payload)

    def begin() -> None:
        question = discovery.question(words, environ, pid)
        cluster = clusters.known(question.environ)
        namespace = question.namespace or cluster.endpoint.namespace

        def hear(pods: Sequence[Any] | NotKnown) -> None:
            _guarded(lambda: say(_answer(question, pods, namespace)), say)

        cluster.ask(namespace, question.selectors, hear)

    _guarded(begin, say)


def _answer(question: Question, pods: Sequence[Any] | NotKnown, namespace: str) -> bytes:
    if isinstance(pods, NotKnown):
        raise pods
    return question.answer(pods, namespace)


def _guarded(act: Callable[[], None], say: Callable[[bytes], None]) -> None:
    """An error in one call must not end the commands."""
    try:
        act()
    except NotKnown as error:
        say(frames.refused(str(error)))
    except Exception as error:  # noqa: BLE001  the API server's answer is as good
        traceback.print_exception(error)
        say(frames.refused("internal error in the switchboard"))
