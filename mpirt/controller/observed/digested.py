"""
The sections of objects of which the cache keeps digests.

Owns: which these are, and their form. They list a job's workers or hold whole files, so they may be as long as an
object can be, however small the job is; and they are only compared with what the job wants. Of the workers that a
Role names, the numbers are kept, too, as ranges.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import worker_name, worker_number
from mpirt.controller.model.reading import Body, digest, rows, table

# Where the cache has the workers that a Role names.
_WORKERS = "workers"


def digested(kind: str, body: Body) -> dict[str, Any]:
    """Return these sections of an object in the form in which the cache keeps them; none for most kinds."""
    if kind == kinds.ROLE and "rules" in body:
        return {"rules": digest(body["rules"]), _WORKERS: _ranges(body)}
    if kind != kinds.CONFIG_MAP:
        return {}
    # By name: whether a certain file is there shows whose the ConfigMap is.
    made = (("data", digest), ("binaryData", _of_keeper))
    return {
        section: {name: of(value) for name, value in table(body, section).items()}
        for section, of in made
        if section in body
    }


def named_workers(job: str, role: Body) -> set[str]:
    """Return the names of the job's workers that its Role names, as the cache has it."""
    ranges = (range(first, last + 1) for first, last in role.get(_WORKERS, ()))
    return {worker_name(job, number) for numbers in ranges for number in numbers}


def _ranges(role: Body) -> list[tuple[int, int]]:
    names = {str(name) for rule in rows(role, "rules") for name in rule.get("resourceNames") or ()}
    found: list[tuple[int, int]] = []
    for number in sorted({worker_number(name) for name in names} - {-1}):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


@lru_cache(maxsize=8)
def _of_keeper(file: str) -> str:
    """Return the digest of a file that all jobs have, and that is long."""
    return digest(file)
