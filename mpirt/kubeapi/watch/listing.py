"""
A page of a list of pods, as the API server writes it. No I/O.

Owns: the check that it is one, once, so that nobody takes half an answer for an empty list.
"""

from __future__ import annotations

from mpirt.errors import PeerError
from mpirt.kubeapi.request.answers import JsonObject
from mpirt.kubeapi.request.asks import Ask
from mpirt.values import Value


class Page(Value):
    """Pods, the version of the whole list, and the token to go on with: empty on the last page."""

    items: list[JsonObject]
    resource_version: str
    following: str


def read_page(answer: JsonObject, ask: Ask) -> Page:
    """Read a list. Raises PeerError."""
    # An empty list in Go may be null in JSON, but the field is there.
    items = [] if answer.get("items", 0) is None else answer.get("items")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise PeerError(f"could not {ask.doing}: the answer is not a list")
    metadata = answer.get("metadata")
    if not isinstance(metadata, dict):
        raise PeerError(f"could not {ask.doing}: the list has no metadata")
    version, following = metadata.get("resourceVersion"), metadata.get("continue") or ""
    if not isinstance(version, str) or not isinstance(following, str) or not version:
        raise PeerError(f"could not {ask.doing}: the list does not say which version it is")
    return Page(items, version, following)
