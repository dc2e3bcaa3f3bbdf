"""
What is wrong with how a command ended: nothing, or words. No I/O.

Owns: what each death must be called, and what a command that nothing real has happened to must come to.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from mpirt.errors import ExitCode
from tests.e2e.chaos.schedules import Death, Plan

_TERM = 128 + 15
_KILLED = 128 + 9

# The codes that each death may have, and what its line says.
NAMES: dict[Death, tuple[set[int], str]] = {
    Death.MAIN_PROCESS: ({ExitCode.CONTAINER_DIED, _KILLED}, "container|ended"),
    # Its name may be another pod's by the time that it is looked for.
    Death.FORCE_DELETE: ({ExitCode.POD_DELETED}, "deleted|replaced"),
    Death.DELETE: ({ExitCode.POD_DELETED}, "deleted|replaced"),
    Death.COMMAND: ({_KILLED}, ""),
    Death.AGENT: ({_TERM}, ""),
}


@dataclass(frozen=True, slots=True)
class End:
    """How a command ended."""

    plan: Plan
    code: int | None
    """None: its agent did not end."""
    output: bytes
    errors: str
    runs: int
    """How often it began, by what it left in its pod, or in the one that has its pod's name now."""
    is_dead: bool
    """Whether what it was to die of has happened."""
    is_replaced: bool
    """Whether its pod is another one."""


def stdin_of(plan: Plan) -> bytes:
    """What the command reads."""
    return bytes(range(256)) * (plan.stdin // 256) + b"." * (plan.stdin % 256)


def script(plan: Plan, runs: str) -> str:
    """The command: it leaves a line, counts, sums up its stdin, and ends with its code."""
    reads = "sha256sum; " if plan.stdin else ""
    return (
        f"echo $$ >> {runs}; p=$(printf '%0{plan.padding}d' 0); n=0; "
        f"while [ $n -lt {plan.lines} ]; do n=$((n + 1)); echo $$ $n $p; sleep {plan.pause}; done; "
        f"{reads}echo last; exit {plan.code}"
    )


def expected(plan: Plan, pid: str) -> bytes:
    """The whole output of a run."""
    padding = "0" * max(1, plan.padding)
    lines = [f"{pid} {number} {padding}\n" for number in range(1, plan.lines + 1)]
    lines += [f"{sha256(stdin_of(plan)).hexdigest()}  -\n"] if plan.stdin else []
    return "".join([*lines, "last\n"]).encode()


def problems(end: End) -> Iterator[str]:
    """What is wrong, in words."""
    plan = end.plan
    whole = expected(plan, end.output.partition(b" ")[0].decode(errors="replace"))
    if end.code is None:
        yield "its agent did not end"
        return
    if not whole.startswith(end.output):
        yield f"its output is not what the command wrote: {_difference(whole, end.output)}"
    if end.runs > (0 if end.is_replaced else 1):
        yield f"it ran {end.runs} times" + (", and in another pod than its own" if end.is_replaced else "")
    if "Traceback" in end.errors or "mistake" in end.errors:
        yield "its agent told of a mistake of its own"
    if end.output == whole and end.code == plan.code:
        return
    yield from _false_end(end)


def _false_end(end: End) -> Iterator[str]:
    """What is wrong with one that is not the command's own end."""
    codes, line = NAMES[end.plan.death] if end.plan.death and end.is_dead else (set[int](), "")
    if end.code in codes:
        if line and not re.search(line, end.errors):
            yield f"code {end.code}, and no word of {end.plan.death}"
        return
    yield f"code {end.code} after {len(end.output)} bytes"


def _difference(whole: bytes, output: bytes) -> str:
    place = next((i for i, (a, b) in enumerate(zip(whole, output, strict=False)) if a != b), len(whole))
    return f"at byte {place}: {output[place : place + 40]!r} for {whole[place : place + 40]!r}"


def summary(ends: Iterable[End]) -> list[list[str]]:
    """What became of commands, by what was in store for them: rows of a table."""
    counted: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for end in ends:
        death = end.plan.death.value if end.plan.death and end.is_dead else "nothing"
        is_own = end.code == end.plan.code and end.output.endswith(b"last\n")
        counted[death]["its own end" if is_own else f"code {end.code}"] += 1
    rows = [
        [
            death,
            str(sum(codes.values())),
            ", ".join(f"{what}: {times}" for what, times in codes.most_common()),
        ]
        for death, codes in sorted(counted.items())
    ]
    return [["WHAT HAPPENED TO IT", "COMMANDS", "ENDS"], *rows]
