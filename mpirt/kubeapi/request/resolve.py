"""
From a host to the addresses to connect to, by a deadline.

Owns: numbers at once, names in a thread that can be left behind, because the C library's resolver can't be told to
hurry: a name server that doesn't answer holds it for 10 s and more.
"""

from __future__ import annotations

import _socket
import os
import select

from mpirt.errors import Unreachable
from mpirt.kubeapi.access.steps import Deadline
from mpirt.kubeapi.request.answers import TimedOut
from mpirt.kubeapi.request.exchange import Wait
from mpirt.kubeapi.request.stream import Address, SocketAddress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpirt.kubeapi.request.exchange import Steps

    GetAddrInfo = Callable[[str, int], Sequence[Address]]


def by_name(host: str, port: int) -> Sequence[Address]:
    """Ask the system's resolver, for as long as it takes."""
    return _addresses(_socket.getaddrinfo(host, port, type=_socket.SOCK_STREAM))


def resolve(
    host: str, port: int, deadline: Deadline, *, what: str, look_up: GetAddrInfo = by_name
) -> Steps[Sequence[Address]]:
    """Find the addresses of a host, in the order to try them. `what` names it. Raises Unreachable."""
    try:
        # As bytes: text would bring in the tables of international names, for a millisecond; a number has none.
        number = host.encode("ascii")
        numbers = _socket.getaddrinfo(number, port, type=_socket.SOCK_STREAM, flags=_socket.AI_NUMERICHOST)
    except (_socket.gaierror, UnicodeError):
        return (yield from _in_thread(host, port, deadline, what, look_up))
    return _addresses(numbers)


def _in_thread(
    host: str, port: int, deadline: Deadline, what: str, look_up: GetAddrInfo
) -> Steps[Sequence[Address]]:
    # In a pod the API server is a number: only people's own machines and kubeconfigs with names get here.
    import threading  # noqa: PLC0415

    found: list[Sequence[Address]] = []
    failed: list[Exception] = []
    has_ended = threading.Event()
    # Each end is closed by one side only: a thread that was left behind never touches a descriptor of ours.
    reading, writing = os.pipe()

    def look() -> None:
        try:
            found.append(look_up(host, port))
        except (OSError, UnicodeError) as error:
            failed.append(error)
        finally:
            has_ended.set()
            os.close(writing)

    threading.Thread(target=look, name=f"resolve {host}", daemon=True).start()
    try:
        while not has_ended.is_set():
            if deadline.passed():
                raise TimedOut(f"{what} was not resolved within {deadline}; is DNS up?")
            yield Wait(reading, select.POLLIN, deadline)
    finally:
        os.close(reading)
    if failed:
        error = failed[0]
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a usable name"
        raise Unreachable(f"{what} can't be resolved: {reason}") from error
    return found[0]


def _addresses(found: Sequence[tuple[int, int, int, str, SocketAddress]]) -> Sequence[Address]:
    return [Address(family, address) for family, _, _, _, address in found]
