"""
The look-up of a host name, in the session's words, for somebody else's poll loop: nothing here ever waits.

Owns: what the end of a look-up is to a session. Imported when the API server knows no pod of the given name.
"""

from __future__ import annotations

from mpirt.errors import MpirtError
from mpirt.kubeapi.access.steps import Pending
from mpirt.rsh.session import events


class PodLookup(Pending[str]):
    """One look-up, by steps that return the pod's name. The owner calls learn() until it returns an event."""

    __slots__ = ()

    def learn(self) -> events.PodFound | events.NotOpened | None:
        """Do what can be done without waiting; give the outcome once there is one."""
        try:
            return events.PodFound(self.result or "") if self.advance() else None
        except MpirtError as error:
            return events.NotOpened(error)
