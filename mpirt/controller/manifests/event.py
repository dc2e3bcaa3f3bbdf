"""
Events: each transition is reported once.

Owns: the Event object. Its name holds a digest of the transition, so that no transition is reported twice, not
even by another replica.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from mpirt import names
from mpirt.controller.model import kinds
from mpirt.controller.model.reading import shortened, write_time
from mpirt.controller.model.spec import Owner

# The limit of the API.
_LONGEST_MESSAGE = 1024


def event(
    owner: Owner, identity: str, *, warning: bool, reason: str, message: str, now: datetime
) -> dict[str, Any]:
    """Return an event about the job; `identity` distinguishes it from all others."""
    time = write_time(now)
    return {
        "apiVersion": kinds.RESOURCES[kinds.EVENT].api_version,
        "kind": kinds.EVENT,
        "metadata": {"name": f"{owner.key.name}.{identity}", "namespace": owner.key.namespace},
        "involvedObject": {
            "apiVersion": owner.api_version,
            "kind": owner.kind,
            "name": owner.key.name,
            "namespace": owner.key.namespace,
            "uid": owner.uid,
        },
        "type": "Warning" if warning else "Normal",
        "reason": reason,
        "message": shortened(message, _LONGEST_MESSAGE),
        "source": {"component": names.CONTROLLER},
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }
