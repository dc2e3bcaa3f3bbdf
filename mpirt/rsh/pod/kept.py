"""
The pods of a watched set, kept for whoever asks for all of them.

Owns: the pods as the watch tells of them, from the moment somebody wants them; whether all of them are there; and
which label selectors the labels of these pods can decide. No I/O.
"""

from __future__ import annotations

import re

from mpirt.boards.podlist import pod_text
from mpirt.kubeapi.watch.listwatch import News, NewsKind
from mpirt.objects import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Labels = Mapping[str, object]
    # Names and values of labels; None is any value.
    Terms = Mapping[str, str | None]

_DNS = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_WORD = "[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
# Whatever else there is, only the API server knows what it means, and whether it means anything.
_TERM = re.compile(rf"((?:{_DNS}(?:\.{_DNS})*/)?{_WORD})(?:=({_WORD}))?")
_OPERATORS = ("in", "notin")


class KeptPods:
    """Nothing, until somebody wants them."""

    __slots__ = ("_is_wanted", "_pods", "is_complete")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Keep nothing, and nothing of what will be told."""
        self._pods: dict[str, tuple[Labels, str]] = {}
        self._is_wanted = self.is_complete = False
        """`is_complete`: whether these are all, as of the last news."""

    def want(self) -> None:
        """Keep the pods of all news from now on. The next whole list makes them complete."""
        self._is_wanted = True

    def take(self, news: News) -> None:
        """What the watch of the set tells."""
        if not self._is_wanted:
            return
        match news.kind:
            case NewsKind.SEEN:
                body = news.pod or {}
                self._pods[news.name] = table(body, "metadata", "labels"), pod_text(body)
            case NewsKind.GONE:
                self._pods.pop(news.name, None)
            case NewsKind.LISTED:
                self._pods = {name: pod for name, pod in self._pods.items() if name in news.names}
                # The pods of a list that had begun before want() are partly missing.
                self.is_complete = len(self._pods) == len(news.names)
            case NewsKind.REFUSED:
                self.forget()

    def select(self, watched: str, selectors: Sequence[str]) -> list[str]:
        """Those that one of the selectors finds, as JSON, where covers() holds."""
        if watched in selectors:
            return [pod for _, pod in self._pods.values()]
        wanted = [terms for selector in selectors if (terms := _terms(selector)) is not None]
        return [pod for labels, pod in self._pods.values() if any(_holds(terms, labels) for terms in wanted)]


def covers(watched: str, selectors: Sequence[str]) -> bool:
    """
    Whether all pods that these selectors find are in the watched set, and their labels say which these are.

    A selector finds no more than a set that is watched by some of its terms.
    """
    return bool(selectors) and all(_covers(watched, selector) for selector in selectors)


def _covers(watched: str, selector: str) -> bool:
    if selector == watched:
        return True
    outer, inner = _terms(watched) if watched else {}, _terms(selector)
    return outer is not None and inner is not None and outer.items() <= inner.items()


def _terms(selector: str) -> Terms | None:
    """What a selector of the simplest form asks for: a=b,c. None for every other form."""
    found: dict[str, str | None] = {}
    for term in selector.split(","):
        read = _TERM.fullmatch(term)
        if read is None or read[1] in found or read[1] in _OPERATORS:
            return None
        found[read[1]] = read[2]
    return found


def _holds(terms: Terms, labels: Labels) -> bool:
    return all(name in labels and value in (None, labels[name]) for name, value in terms.items())
