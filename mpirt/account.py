"""
The account of a launcher: what its commands in the workers came to, for whoever judges the launcher's exit code.

Owns: its form, one line of JSON in the termination message of the launcher's container. The switchboard writes it,
the controller reads it; other lines of the message are somebody else's.

There is one only if there is something to tell. A container without a termination message that fails has its last
lines of output there, which tell more about a failure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from mpirt.objects import number, rows, table, text

_MARK = "mpirt.dev/account"
# A kubelet reads 4 KiB of a termination message.
_LONGEST = 3072


@dataclass(frozen=True, slots=True)
class Lost:
    """A command that mpirt-rsh could not follow to its end."""

    pod: str
    code: int
    """mpirt-rsh's."""


@dataclass(frozen=True, slots=True)
class Account:
    """What is told of the launcher's last commands: those after which it has begun no others."""

    lost: tuple[Lost, ...] = ()
    again: Mapping[str, str] = field(default_factory=dict)
    """The pods that they ran in whose container is younger than the launcher, with the container's identity."""


def write(account: Account) -> str:
    """Return the line; empty if there is nothing to tell."""
    lost = [{"pod": one.pod, "code": one.code} for one in account.lost]
    again = dict(account.again)
    while lost or again:
        line = json.dumps({_MARK: {"lost": lost, "again": again}}, separators=(",", ":"))
        if len(line) <= _LONGEST:
            return line
        # A pod that isn't named here counts as lost, if another one had its name before.
        (again.popitem if again else lost.pop)()
    return ""


def read(message: str) -> Account:
    """Return the account in a termination message."""
    for line in message.splitlines():
        if is_account(line) and (told := _table(line)):
            lost = tuple(Lost(text(row, "pod"), number(row, "code")) for row in rows(told, "lost"))
            again = {pod: text(table(told, "again"), pod) for pod in table(told, "again")}
            return Account(lost, again)
    return Account()


def is_account(line: str) -> bool:
    """Whether a line of a termination message is ours."""
    return line.startswith(f'{{"{_MARK}":')


def _table(line: str) -> Mapping[str, object]:
    try:
        return table(json.loads(line), _MARK)
    except (ValueError, RecursionError):
        return {}
