"""
Structured log lines: one per decision, each a list of names and values.

Owns: the two formats, logfmt for people and JSON for log collectors, and writing the lines. The message says what
was done; every detail is a field of its own.
"""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TextIO

Value = str | int | float | bool
Form = Callable[[Mapping[str, Value]], str]


class Log(ABC):
    """A logger."""

    def info(self, message: str, **fields: Value) -> None:
        """Log what was done or decided."""
        self.write("info", message, fields)

    def warning(self, message: str, **fields: Value) -> None:
        """Log a problem that the controller handles itself, for example by retrying."""
        self.write("warning", message, fields)

    def error(self, message: str, **fields: Value) -> None:
        """Log a problem that needs a person's attention."""
        self.write("error", message, fields)

    @abstractmethod
    def write(self, level: str, message: str, fields: Mapping[str, Value]) -> None:
        """Write a line."""


def logfmt(fields: Mapping[str, Value]) -> str:
    """Return the fields as name=value, with quotes where a value needs them."""
    return " ".join(f"{name}={_quoted(value)}" for name, value in fields.items())


def as_json(fields: Mapping[str, Value]) -> str:
    """Return the fields as one JSON object."""
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


FORMS: Mapping[str, Form] = {"logfmt": logfmt, "json": as_json}


def _quoted(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    plain = text and text.isprintable() and not any(letter in ' ="\\' for letter in text)
    return text if plain else json.dumps(text, ensure_ascii=False)


class LineLog(Log):
    """Writes whole lines to a stream, from any thread."""

    def __init__(self, stream: TextIO, form: Form, clock: Callable[[], datetime]) -> None:
        self._stream = stream
        self._form = form
        self._clock = clock
        self._lock = threading.Lock()

    def write(self, level: str, message: str, fields: Mapping[str, Value]) -> None:
        time = self._clock().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = self._form({"time": time, "level": level, "message": message, **fields})
        with self._lock:
            self._stream.write(line + "\n")
            self._stream.flush()


def report_mistake(log: Log, error: BaseException, **fields: Value) -> None:
    """Log an internal error, which only a change of this program can fix, in one line."""
    log.error("internal error; please report it", **fields, error=_where(error))


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else ""
    return f"{type(error).__name__}: {error}{place}"
