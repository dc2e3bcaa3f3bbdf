"""
Workers that were written for ssh: the command that starts sshd, and the probes of its port.

Owns: recognising sshd in a container's command and args, what the container runs in its place, and which probes
can't succeed without it. Jobs written for mpi-operator v2 start sshd with keys that don't exist here, and nothing
would connect to it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from mpirt.controller.model.reading import Body, number, rows, table, text

# The traps end the shell at once: process 1 would ignore TERM for the whole grace period without them. Not with 0:
# whatever ends a worker, it has not done what it was there for.
_WAIT = "trap 'exit 143' TERM; trap 'exit 130' INT; while :; do sleep 3600 & wait $!; done"
IDLE = ("/bin/sh", "-c", _WAIT)

PROBES = ("startupProbe", "readinessProbe", "livenessProbe")

_SSHD = "sshd"
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh"})
# Programs that only start the program in their arguments.
_WRAPPERS = frozenset({
    "tini", "dumb-init", "catatonit", "env", "exec", "sudo", "nohup", "entrypoint.sh", "docker-entrypoint.sh",
})  # fmt: skip
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
# Where one command of a shell line ends and the next begins; not the & of 2>&1 and &>.
_BETWEEN_COMMANDS = re.compile(r"&&|\|\||;|\n|\||(?<!>)&(?!>)")
# Parts of a compound command: a line that ends with one can't be cut before its last command.
_COMPOUND = re.compile(r"[()`{}]")
_OPTIONS_WITH_VALUE = frozenset("bCcEfghkopu")
_PORT = re.compile(r"[0-9]{1,5}")
_PORT_SETTING = re.compile(r"\s*port(?:\s*=\s*|\s+)(\d+)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Start:
    """How a container starts sshd."""

    options: tuple[str, ...]
    instead: Mapping[str, Any]
    """The container's command and args without sshd."""


def starts_sshd(container: Body) -> bool:
    """Whether the container runs sshd, or a shell line that starts sshd as its last command."""
    return _start(container) is not None


def idle_command(container: Body) -> dict[str, Any]:
    """
    Return a command and args that only wait, for a worker that was given nothing to run, or sshd.

    What a shell line runs before sshd still runs. Empty if the container runs something else.
    """
    start = _start(container)
    if start is not None:
        return dict(start.instead)
    return {} if _words(container) else {"command": list(IDLE), "args": []}


def unanswered_probes(container: Body, beside: Sequence[Body]) -> dict[str, str]:
    """
    Return the probes that only sshd would have answered, each with what it asks for.

    In most cases sshd's port is configured in a file of the image. Then every port counts that no container
    `beside` declares. A container with nothing to run is treated as if it ran sshd: mpi-operator starts sshd
    there.
    """
    start = _start(container)
    if start is None and _words(container):
        return {}
    ports = frozenset(_ports(start.options)) if start is not None else frozenset[int]()
    others = {number(row, "containerPort") for one in beside for row in rows(one, "ports")}
    found = {}
    for name in PROBES:
        asked = _asks_for(table(container, name), container, ports, others)
        if asked:
            found[name] = asked
    return found


def _words(container: Body) -> list[str]:
    return [*(container.get("command") or []), *(container.get("args") or [])]


def _start(container: Body) -> _Start | None:
    words = _words(container)
    program = _unwrapped(words) if any(_SSHD in word for word in words) else []
    if not program:
        return None
    if _is_sshd(program[0]):
        return _Start(tuple(program[1:]), {"command": list(IDLE), "args": []})
    place = len(words) - len(program)
    script = _script_at(words, place)
    if script is None or (cut := _cut_before_sshd(words[script])) is None:
        return None
    before, options = cut
    changed = [*words[:script], f"{before}{{ {_WAIT}; }}", *words[script + 1 :]]
    count = len(container.get("command") or [])
    return _Start(options, {"command": changed[:count], "args": changed[count:]})


def _unwrapped(words: Sequence[str]) -> list[str]:
    """Return the program and its options, without the wrappers that start it."""
    wrapping = list(takewhile(_only_starts, words))
    return list(words[len(wrapping) :])


def _only_starts(word: str) -> bool:
    return _basename(word) in _WRAPPERS or word.startswith("-") or bool(_ASSIGNMENT.fullmatch(word))


def _script_at(words: Sequence[str], place: int) -> int | None:
    """Return the index of the line that the shell at `place` runs; None if that is no shell or runs no line."""
    if _basename(words[place]) not in _SHELLS:
        return None
    options = list(takewhile(lambda word: word.startswith(("-", "+")), words[place + 1 :]))
    has_line = any(not option.startswith("--") and "c" in option for option in options)
    script = place + 1 + len(options)
    return script if has_line and script < len(words) else None


def _cut_before_sshd(line: str) -> tuple[str, tuple[str, ...]] | None:
    """Return what a shell line runs before sshd and sshd's options; None if sshd is not its last command."""
    line = line.replace("\\\n", " ").rstrip("; \t\r\n")
    ends = [match.end() for match in _BETWEEN_COMMANDS.finditer(line)]
    before, last = (line[: ends[-1]], line[ends[-1] :]) if ends else ("", line)
    if _COMPOUND.search(last):
        return None
    try:
        program = _unwrapped(shlex.split(last))
    except ValueError:
        return None
    if not program or not _is_sshd(program[0]):
        return None
    return f"{before} " if before else "", tuple(program[1:])


def _is_sshd(word: str) -> bool:
    return _basename(word) == _SSHD


def _basename(word: str) -> str:
    return word.rpartition("/")[2]


def _ports(options: Sequence[str]) -> Iterator[int]:
    """The ports that sshd's options name: -p 2222, -p2222, -o Port=2222."""
    words = iter(options)
    for word in words:
        letters = word[1:] if word.startswith("-") else ""
        for place, letter in enumerate(letters):
            if letter in _OPTIONS_WITH_VALUE:
                value = letters[place + 1 :] or next(words, "")
                yield from _port_of(letter, value)
                break


def _port_of(letter: str, value: str) -> Iterator[int]:
    setting = _PORT_SETTING.fullmatch(value) if letter == "o" else None
    digits = setting[1] if setting else value if letter == "p" else ""
    if _PORT.fullmatch(digits):
        yield int(digits)


def _asks_for(probe: Body, container: Body, ports: frozenset[int], others: set[int]) -> str:
    """Return what the probe asks sshd for; empty if it does not ask sshd."""
    if "tcpSocket" in probe:
        asked = table(probe, "tcpSocket").get("port")
        port = _number_of(asked, container)
        is_sshds = port in ports if ports else port not in others
        return f"port {asked}" if is_sshds else ""
    # Kubernetes validates probes, not this program: the values may have any type here.
    given = table(probe, "exec").get("command")
    command = [str(word) for word in given] if isinstance(given, list) else []
    sought = "|".join((_SSHD, *map(str, sorted(ports))))
    return _SSHD if re.search(rf"(?<!\w)(?:{sought})(?!\w)", " ".join(command)) else ""


def _number_of(port: object, container: Body) -> int:
    """Return a port given by number or by name; 0 if the container has no port of that name."""
    if isinstance(port, str) and not _PORT.fullmatch(port):
        named = (row for row in rows(container, "ports") if text(row, "name") == port)
        return next((number(row, "containerPort") for row in named), 0)
    return int(port) if isinstance(port, int | str) else 0
