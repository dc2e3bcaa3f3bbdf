"""
Programs held at once: all are started, all say that they are up, and all are ended.

Owns: the waiting, and that none is left. Must not know what the programs are.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from benchmarks.measure import Program, Unmeasured, started
from testbed.kube.wait import until

_ALL_UP_WITHIN = 120.0
_ENDED_WITHIN = 30.0


@contextmanager
def held(
    argv: Sequence[str], count: int, *, env: Mapping[str, str], sign: str, settled_after: float
) -> Iterator[list[Program]]:
    """
    `count` processes of a program that stays, for as long as the block lasts; TERM ends them.

    A process is up when it has written `sign`; `settled_after` are the seconds to wait when all are.
    """
    with ExitStack() as stack:
        programs = [stack.enter_context(started(argv, env=env)) for _ in range(count)]
        until(
            lambda: all(_is_up(program, sign) for program in programs),
            within=_ALL_UP_WITHIN,
            what=f"{count} processes of {programs[0].name} to be up at once",
        )
        time.sleep(settled_after)
        yield programs
        for program in programs:
            program.terminate()
        for program in programs:
            program.has_ended(within=_ENDED_WITHIN)


def _is_up(program: Program, sign: str) -> bool:
    if program.has_ended():
        raise Unmeasured(f"{program.name} ended instead of staying: {program.said() or 'it said nothing'}")
    return sign in program.said()
