"""
Changes that others make to a job's objects, and the messages about them.

Owns: the names of the field managers that an object records, the event about repeated edits, and the message about
a launcher Job that somebody has suspended. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from mpirt import names
from mpirt.controller.manifests.event import event
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Create, Patch
from mpirt.controller.model.conditions import Reason, reason_in
from mpirt.controller.model.reading import Body, digest, rows, table, text
from mpirt.controller.model.spec import Owner
from mpirt.controller.observed.facts import Observed

# Two edits may be a person's trial and error; three come from a program.
TOLD_AFTER = 3


def edit_undone(owner: Owner, patch: Patch, found: Body, *, now: datetime) -> Create:
    """Return the event about an object changed back TOLD_AFTER times; `found` is its state before the last one."""
    managers = field_managers(found, patch)
    who = f"field manager {', '.join(managers)}" if managers else "a client that names no field manager"
    other = ", ".join(managers) or "that client"
    message = (
        f"{patch.kind} {patch.name}: {who} changed {', '.join(_paths(patch))}, and {names.CONTROLLER} has changed "
        f"it back {TOLD_AFTER} times. It goes on to do so, with delays that grow to 5 min. "
        f"Configure {other} to leave the objects of {owner.kind}s alone."
    )
    identity = digest(owner.uid, patch.kind, patch.name, now.isoformat())
    reason = reason_in(owner.kind, Reason.EDIT_UNDONE)
    body = event(owner, identity, warning=True, reason=reason, message=message, now=now)
    return Create(body, message, once=True)


def field_managers(found: Body, patch: Patch) -> list[str]:
    """Return who else has set what the patch changes; if nobody has, as with a removed field, who wrote last."""
    others = [
        row
        for row in rows(table(found, "metadata"), "managedFields")
        if text(row, "manager") not in ("", names.CONTROLLER) and not text(row, "subresource")
    ]
    setters = [row for row in others if any(_sets(table(row, "fieldsV1"), path) for path in _paths(patch))]
    last = sorted(others, key=lambda row: text(row, "time"))[-1:]
    return sorted({text(row, "manager") for row in setters or last})


def launcher_suspended(observed: Observed) -> str:
    """
    Return the message that the launcher Job is suspended, which only others do; empty if it is not.

    The condition Running has it in place of the message about a missing launcher pod.
    """
    job = observed.live(kinds.JOB)
    if job is None or table(job.body, "spec").get("suspend") is not True:
        return ""
    return (
        f"launcher Job {job.name} is suspended (spec.suspend is true); {names.CONTROLLER} never sets this field, "
        "and waits until whoever suspended the Job, Kueue for example, resumes it"
    )


def _paths(patch: Patch) -> list[str]:
    """Return the changed paths, without our annotations unless they are all."""
    changed = [str(operation["path"]) for operation in patch.operations if operation["op"] != "test"]
    return [path for path in changed if not path.startswith("/metadata/annotations/mpirt.dev~1")] or changed


def _sets(fields: Body, path: str) -> bool:
    """Whether a set of managed fields includes the path, or a field below it."""
    for part in _parts(path):
        if part not in fields:
            return False
        fields = table(fields, part)
        if not fields:
            # It includes the whole field.
            return True
    return True


def _parts(path: str) -> Iterator[str]:
    for part in path.split("/")[1:]:
        yield "f:" + part.replace("~1", "/").replace("~0", "~")
