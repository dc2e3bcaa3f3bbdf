"""A log that keeps its lines."""

from __future__ import annotations

from collections.abc import Mapping

from mpirt.controller.monitoring.logs import Log, Value


class Lines(Log):
    """Level, message and fields of each line."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, Mapping[str, Value]]] = []

    def write(self, level: str, message: str, fields: Mapping[str, Value]) -> None:
        self.lines.append((level, message, fields))
