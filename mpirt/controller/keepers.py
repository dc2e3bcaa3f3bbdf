"""
The keeper's files, encoded as the jobs' ConfigMaps hold them.

Owns: reading and encoding them once, when the controller starts, and reporting those that are not installed.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping

from mpirt import keeper
from mpirt.controller.monitoring.logs import Log


def keeper_files() -> dict[str, str]:
    """Return the installed files by name, in base64."""
    programs = {keeper.file_name(one): keeper.read(one) for one in keeper.ARCHITECTURES}
    return {name: b64encode(program).decode("ascii") for name, program in programs.items() if program}


def report_missing(files: Mapping[str, str], log: Log) -> None:
    """Log once which files workers will lack. Agents then upload a keeper, where there is a place for it."""
    names = [keeper.file_name(one) for one in keeper.ARCHITECTURES]
    if missing := [name for name in names if name not in files]:
        line = "keeper not installed; in workers without a place for it no command can be started"
        log.warning(line, missing=",".join(missing))
