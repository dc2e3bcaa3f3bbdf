"""A log that keeps its lines."""

from __future__ import annotations

from mpirt.controller.monitoring.logs import Value


class Lines:
    """Level, message and fields of each line."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Value]]] = []

    def info(self, message: str, **fields: Value) -> None:
        self.lines.append(("info", message, fields))

    def warning(self, message: str, **fields: Value) -> None:
        self.lines.append(("warning", message, fields))

    def error(self, message: str, **fields: Value) -> None:
        self.lines.append(("error", message, fields))
