"""
What nodes say of pods that they evict.

Owns: reading the events in which a kubelet says so. A pod itself need not: where its containers obey TERM, newer
kubelets write how those ended over the reason and the message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mpirt.controller.reading import Body, table, text

# Which events are watched: of all that there are in a cluster, a few.
FIELDS = "reason=Evicted"


def evictions(events: Iterable[Body]) -> Mapping[str, str]:
    """Why nodes have evicted pods, by the pods' uids."""
    return {text(table(one, "involvedObject"), "uid"): text(one, "message") for one in events}
