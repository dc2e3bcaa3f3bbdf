"""
The name of a job, which becomes part of other names.

Owns: which names are possible. The job's name is also its Service's name, and the names of its pods begin with it:
RFC 1035.
"""

from __future__ import annotations

import re

from mpirt.controller.dialects.fields import shown
from mpirt.controller.model.objectnames import LONGEST_JOB_NAME
from mpirt.errors import SpecError

_JOB_NAME = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")


def check_job_name(name: str) -> None:
    """Raise SpecError if no job can have this name."""
    if not _JOB_NAME.fullmatch(name) or len(name) > LONGEST_JOB_NAME:
        raise SpecError(
            "metadata.name",
            "must consist of lower-case letters, digits and hyphens, begin with a letter and have at most "
            f"{LONGEST_JOB_NAME} characters, because it is part of pod names and labels; got {shown(name)}",
        )
