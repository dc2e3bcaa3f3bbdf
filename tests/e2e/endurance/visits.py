"""
The commands that come and go, as values made from a seed: the same seed makes the same ones.

Owns: what each does, when it comes, and what its agent has to write and to end with. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from random import Random

PER_SECOND = 5

_LINE = "0123456789abcdef" * 4
_PAUSE = 1.0
_LEAST_LINES = 5
# More than pipes, agent and switchboard hold for a reader that does not read.
_MORE_THAN_FITS = 3_000_000


class Kind(Enum):
    """What a command does."""

    NOTHING = "nothing"
    FAILS = "fails"
    WRITES = "writes"
    READS = "reads"
    COUNTS = "counts"
    IS_READ_LATE = "is read late"


_SHARES = {
    Kind.NOTHING: 35,
    Kind.FAILS: 10,
    Kind.WRITES: 15,
    Kind.READS: 15,
    Kind.COUNTS: 20,
    Kind.IS_READ_LATE: 5,
}


@dataclass(frozen=True, slots=True)
class Visit:
    """One command."""

    number: int
    comes: float
    """Seconds from the beginning of the lap."""
    kind: Kind
    amount: int
    """Bytes or lines."""
    code: int
    read_after: float

    @property
    def script(self) -> str:
        """What runs in the pod."""
        match self.kind:
            case Kind.WRITES | Kind.IS_READ_LATE:
                return f"yes {_LINE} | head -c {self.amount}"
            case Kind.READS:
                return "cat"
            case Kind.COUNTS:
                count = f"n=$((n + 1)); echo $n; sleep {_PAUSE}"
                return f"n=0; while [ $n -lt {self.amount} ]; do {count}; done"
            case _:
                return f"exit {self.code}"

    @property
    def stdin(self) -> bytes:
        """What it is given to read."""
        return _cut_lines(self.amount) if self.kind is Kind.READS else b""

    @property
    def output(self) -> bytes:
        """All that it writes."""
        match self.kind:
            case Kind.WRITES | Kind.READS | Kind.IS_READ_LATE:
                return _cut_lines(self.amount)
            case Kind.COUNTS:
                return b"".join(b"%d\n" % number for number in range(1, self.amount + 1))
            case _:
                return b""


def of(seed: str, seconds: float) -> Iterator[Visit]:
    """Those of a lap, in the order in which they come. None lasts long beyond it."""
    random = Random(seed)
    kinds, weights = list(_SHARES), list(_SHARES.values())
    for number in range(int(seconds * PER_SECOND)):
        [kind] = random.choices(kinds, weights)
        comes = (number + random.random()) / PER_SECOND
        yield Visit(
            number,
            comes=comes,
            kind=kind,
            amount=_amount(random, kind, min(seconds / 3, seconds - comes)),
            code=random.choice((1, 3, 77)) if kind is Kind.FAILS else 0,
            read_after=random.uniform(1, 5) if kind is Kind.IS_READ_LATE else 0.0,
        )


def _amount(random: Random, kind: Kind, seconds: float) -> int:
    match kind:
        case Kind.WRITES:
            return random.choice((1, 10_000, 100_000, 1_000_000))
        case Kind.READS:
            return random.choice((1, 1000, 300_000))
        case Kind.COUNTS:
            return random.randint(_LEAST_LINES, max(_LEAST_LINES, int(seconds / _PAUSE)))
        case Kind.IS_READ_LATE:
            return _MORE_THAN_FITS
        case _:
            return 0


def _cut_lines(size: int) -> bytes:
    line = f"{_LINE}\n".encode()
    return (line * (size // len(line) + 1))[:size]
