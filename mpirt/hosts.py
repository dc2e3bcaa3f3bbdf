"""
A host and its slots, and the ways launchers write lists of them.

Owns: `Host`, the four forms a list is written in, and the reading of a list that somebody wrote. Must not
import anything that reads a file or the environment: text comes in, text goes out. mpirt-discover imports this
every second, so no dataclasses and no regular expressions: docs/architecture.md has what they cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from mpirt.errors import SpecError
from mpirt.values import Value

# DNS: labels of at most 63 characters, 253 in all. Underscores are no DNS, but machines are named with them.
_IN_A_LABEL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_LABEL_LIMIT = 63
_NAME_LIMIT = 253

# Launchers keep slots in a C int; nine digits always fit one.
_DIGITS_LIMIT = 9

# Open MPI's lexer takes these words, and blanks around the equals sign.
_SLOTS_WORDS = frozenset({"slots", "count", "cpu"})
_LIMIT_WORDS = frozenset({"max_slots", "max-slots", "slots_max", "slots-max"})


class Form(Enum):
    """Who is going to read the list."""

    HOROVOD = "horovod"
    HOSTFILE = "hostfile"
    HYDRA = "hydra"
    JSON = "json"


class Host(Value):
    """A name that a launcher may hand to its remote-shell agent, and how many processes may run there."""

    name: str
    slots: int

    def __post_init__(self) -> None:
        if len(self.name) > _NAME_LIMIT or not all(map(_is_label, self.name.split("."))):
            raise SpecError("host", f"not a host name: {self.name!r}")
        if self.slots < 1:
            raise SpecError("slots", f"must be at least 1, got {self.slots}")


def render(hosts: Iterable[Host], form: Form) -> str:
    """
    The list as `form` wants it, in the order given, each line ended.

    No form holds a comment or a blank line: horovodrun takes each line of a discovery script for a host, and its
    reader of hostfiles breaks on both.
    """
    if form is Form.JSON:
        # With what it brings along, the dearest thing here; launchers ask for another form.
        import json  # noqa: PLC0415

        return json.dumps([{"name": host.name, "slots": host.slots} for host in hosts]) + "\n"
    between = " slots=" if form is Form.HOSTFILE else ":"
    return "".join(f"{host.name}{between}{host.slots}\n" for host in hosts)


def parse_hosts(text: str) -> tuple[Host, ...]:
    """
    The hosts of a list in Open MPI's, Hydra's or Horovod's form, in the order of their first mention.

    Lines may be blank and end in a comment. As Open MPI reads it: a host without a number has one slot, or
    max_slots if only that is given, and a host that is mentioned again gets the sum. A line that can't be
    read raises SpecError with its number as the field.
    """
    slots: dict[str, int] = {}
    for number, line in _lines(text):
        try:
            host = _parse_line(line)
        except SpecError as error:
            raise SpecError(f"line {number}", str(error)) from error
        slots[host.name] = slots.get(host.name, 0) + host.slots
    return tuple(Host(name, count) for name, count in slots.items())


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        content = line.partition("#")[0].strip()
        if content:
            yield number, content


def _parse_line(line: str) -> Host:
    first, *rest = "=".join(part.strip() for part in line.split("=")).split()
    name, colon, count = first.partition(":")
    numbers = {"slots": parse_count("slots", count)} if colon else {}
    for word in rest:
        field, number = _setting(word)
        if field in numbers:
            raise SpecError(field, f"given twice in {line!r}")
        numbers[field] = number
    limit = numbers.get("max_slots")
    slots = numbers.get("slots", 1 if limit is None else limit)
    if limit is not None and limit < slots:
        raise SpecError("max_slots", f"must not be below slots={slots}, got {limit}")
    return Host(name, slots)


def _setting(word: str) -> tuple[str, int]:
    key, equals, digits = word.partition("=")
    if equals and key in _SLOTS_WORDS:
        return "slots", parse_count("slots", digits)
    if equals and key in _LIMIT_WORDS:
        return "max_slots", parse_count("max_slots", digits)
    raise SpecError("host", f"expected slots=N or max_slots=N after the name, got {word!r}")


def parse_count(field: str, digits: str) -> int:
    """A number of slots, written in digits. That it is at least 1 is the host's matter."""
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_LIMIT):
        raise SpecError(field, f"must be a whole number of at most nine digits, got {digits!r}")
    return int(digits)


def _is_label(text: str) -> bool:
    return 0 < len(text) <= _LABEL_LIMIT and text[0] != "-" != text[-1] and not text.strip(_IN_A_LABEL)
