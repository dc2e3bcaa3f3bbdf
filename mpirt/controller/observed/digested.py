"""
The sections of objects of which the cache keeps digests.

Owns: which these are, and their form. They list a job's workers or hold whole files, so they may be as long as an
object can be, however small the job is; and they are only ever compared with what the job wants.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mpirt.controller.model import kinds
from mpirt.controller.model.digests import digest
from mpirt.controller.model.reading import Body, table


def digested(kind: str, body: Body) -> dict[str, Any]:
    """Return these sections of an object in the form in which the cache keeps them; none for most kinds."""
    if kind == kinds.ROLE and "rules" in body:
        return {"rules": digest(body["rules"])}
    if kind != kinds.CONFIG_MAP:
        return {}
    # By name: whether a certain file is there shows whose the ConfigMap is.
    made = (("data", digest), ("binaryData", _of_keeper))
    return {
        section: {name: of(value) for name, value in table(body, section).items()}
        for section, of in made
        if section in body
    }


@lru_cache(maxsize=8)
def _of_keeper(file: str) -> str:
    """Return the digest of a file that all jobs have, and that is long."""
    return digest(file)
