"""
The account of a launcher: how its commands in the workers have ended, for a judgement on the launcher's exit code.

Owns: its form in the termination message of the launcher's container. The switchboard writes it, the controller
reads it: one line of JSON, and before it what mpirt-rsh said of each loss. Other lines are by other programs.

There is one only if there is something to tell. A container without a termination message that fails has its last
lines of output there, which tell more about a failure. Whether it is complete is written after a success only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from mpirt import names
from mpirt.objects import number, rows, table, text, texts

SAYS = f"{names.RSH}: "
"""How the lines for people begin, as those that mpirt-rsh itself writes to stderr."""

_MARK = "mpirt.dev/account"
_BEGINS = f'{{"{_MARK}":'
# A kubelet reads 4 KiB of a termination message.
_LONGEST = 3072
# One pod that is lost is as bad as all; and those after the first have the same cause.
_MOST, _TOLD = 10, 3
_MOST_AGAIN = 50


@dataclass(frozen=True, slots=True)
class Lost:
    """A command that mpirt-rsh could not follow to its end."""

    pod: str
    code: int
    """mpirt-rsh's."""
    why: str = ""
    """The same in words; not read back."""


@dataclass(frozen=True, slots=True)
class Account:
    """What is known of the launcher's last commands."""

    lost: tuple[Lost, ...] = ()
    silent: tuple[str, ...] = ()
    """The pods whose command may have ended without its launcher's or mpirt-rsh's knowledge."""
    again: Mapping[str, str] = field(default_factory=dict)
    """The pods that they ran in whose container is younger than the launcher, with the container's identity."""
    is_settled: bool = False
    """Whether the launcher has ended with 0, and nothing more will be known of its commands."""


def write(account: Account) -> str:
    """Return the lines; empty if there is nothing to tell. A pod of `again` that has no room counts as lost."""
    lost = [{"pod": one.pod, "code": one.code} for one in account.lost[:_MOST]]
    silent, again = list(account.silent[:_MOST]), dict(islice(account.again.items(), _MOST_AGAIN))
    words = [f"{SAYS}{one.why}" for one in account.lost[:_TOLD] if one.why]
    settled = {"settled": True} if account.is_settled else {}
    while lost or silent or again or settled:
        found = {"lost": lost, "silent": silent, "again": again, **settled}
        data = json.dumps({_MARK: found}, separators=(",", ":"))
        lines = "".join(f"{line}\n" for line in (*words, data))
        if len(lines.encode()) <= _LONGEST:
            return lines
        (words.pop if words else again.popitem if again else silent.pop if silent else lost.pop)()
    return ""


def read(message: str) -> Account:
    """Return the account in a termination message."""
    for line in message.splitlines():
        if line.startswith(_BEGINS) and (found := _table(line)):
            lost = tuple(Lost(text(row, "pod"), number(row, "code")) for row in rows(found, "lost"))
            again = {pod: text(table(found, "again"), pod) for pod in table(found, "again")}
            return Account(lost, texts(found, "silent"), again, is_settled=found.get("settled") is True)
    return Account()


def without_data(message: str) -> str:
    """Return the lines of a termination message that are for people."""
    return "\n".join(line for line in message.splitlines() if not line.startswith(_BEGINS))


def of_others(message: str) -> str:
    """Return the lines of a termination message that are not of an account."""
    lines = without_data(message).splitlines()
    return "".join(f"{line}\n" for line in lines if not line.startswith(SAYS))


def _table(line: str) -> Mapping[str, object]:
    try:
        return table(json.loads(line), _MARK)
    except (ValueError, RecursionError):
        return {}
