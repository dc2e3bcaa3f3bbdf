"""
Reads what users wrote, JSON or YAML, field by field, and reports an invalid field with its path.

Owns: the checks of a field's type and range. A null field counts as missing, as it does for Kubernetes. An invalid
value of a job is shown; one of a file never is, because any of them may be a secret. Objects as the API server has
them are read with objects.py, where an invalid field counts as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Self, TypeVar

from mpirt.errors import ConfigError, MpirtError, SpecError

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")

MOST = 2**31 - 1
"""The largest number in a field of 32 bits."""

_SHOWN = 60


class Fields:
    """A mapping that a user wrote in an object of Kubernetes, and its path there."""

    __slots__ = ("path", "values")

    MAPPING, HINT = "an object", ""

    def __init__(self, value: object, path: str) -> None:
        self.path = path
        if not isinstance(value, Mapping):
            raise self.error("", f"expected {self.MAPPING}, got {self.shown(value)}")
        self.values: Mapping[str, Any] = value

    def inside(self, value: object, path: str) -> Self:
        """Return the mapping at a path inside this one."""
        return type(self)(value, path)

    def error(self, name: str, problem: str) -> MpirtError:
        """Return the error about a field; an empty name stands for the mapping itself."""
        return SpecError(self.at(name), problem)

    @staticmethod
    def shown(value: object) -> str:
        """Return an invalid value as it is shown in a message."""
        return shown(value)

    def at(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{name}" if self.path and name else self.path or name

    def has(self, name: str) -> bool:
        """Whether the field is set."""
        return self.values.get(name) is not None

    def table(self, name: str) -> Self:
        """Return the object in a field; empty if it is missing."""
        value = self.values.get(name)
        return self.inside({} if value is None else value, self.at(name))

    def needed_table(self, name: str) -> Self:
        """Return the object in a required field."""
        if self.values.get(name) is None:
            raise self.error(name, "is missing")
        return self.table(name)

    def rows(self, name: str) -> list[Self]:
        """Return the list of objects in a field; empty if it is missing."""
        return [self.inside(value, f"{self.at(name)}[{number}]") for number, value in enumerate(self._list(name))]

    def texts(self, name: str) -> list[str]:
        """Return the list of texts in a field; empty if it is missing."""
        found = self._list(name)
        for number, value in enumerate(found):
            if not isinstance(value, str):
                raise self.error(f"{name}[{number}]", f"expected text, got {self.shown(value)}{self.HINT}")
        return list(found)

    def text(self, name: str, default: str = "") -> str:
        """Return the text in a field; the default if it is missing."""
        value = self._of(name, str, "text")
        return default if value is None else value

    def flag(self, name: str) -> bool | None:
        """Return the boolean in a field; None if it is missing."""
        return self._of(name, bool, "true or false")

    def number(self, name: str, *, least: int, most: int = MOST) -> int | None:
        """Return the whole number in a field; None if it is missing."""
        value = self._of(name, int, "a whole number")
        if value is not None and value < least:
            raise self.error(name, f"must be at least {least}, got {self.shown(value)}")
        if value is not None and value > most:
            raise self.error(name, f"must be at most {most}, got {self.shown(value)}")
        return value

    def choice(self, name: str, choices: type[E], default: E) -> E:
        """Return one of the choices; the default if the field is missing or empty."""
        value = self.text(name)
        if value and value not in frozenset(choices):
            raise self.error(name, f"must be one of {', '.join(choices)}, got {self.shown(value)}")
        return choices(value) if value else default

    def labels(self, name: str) -> dict[str, str]:
        """Return a mapping of names to texts, as for labels and annotations; empty if it is missing."""
        table = self.table(name)
        return {key: table.text(key) for key in table.values}

    def _list(self, name: str) -> list[Any]:
        return self._of(name, list, "a list") or []

    def _of(self, name: str, kind: type[T], wanted: str) -> T | None:
        value = self.values.get(name)
        # For Python true and false are numbers.
        if value is None or (isinstance(value, kind) and (kind is bool or not isinstance(value, bool))):
            return value
        hint = self.HINT if kind is str else ""
        raise self.error(name, f"expected {wanted}, got {self.shown(value)}{hint}")


class ValidFields(Fields):
    """The same fields, of which an invalid one counts as missing."""

    __slots__ = ()

    def table(self, name: str) -> Self:
        value = self.values.get(name)
        return self.inside(value if isinstance(value, Mapping) else {}, self.at(name))

    def text(self, name: str, default: str = "") -> str:
        return _valid(super().text, default, name)

    def flag(self, name: str) -> bool | None:
        return _valid(super().flag, None, name)

    def number(self, name: str, *, least: int, most: int = MOST) -> int | None:
        return _valid(super().number, None, name, least=least, most=most)

    def choice(self, name: str, choices: type[E], default: E) -> E:
        return _valid(super().choice, default, name, choices, default)


def _valid(read: Callable[..., T], default: T, *args: object, **limits: int) -> T:
    try:
        return read(*args, **limits)
    except SpecError:
        return default


class FileFields(Fields):
    """A mapping in a file, whose errors name the file and no value. An empty text counts as missing."""

    __slots__ = ("file",)

    MAPPING, HINT = "named fields", "; put it in quotes"

    def __init__(self, value: object, *, file: str, path: str = "") -> None:
        self.file = file
        super().__init__(value, path)
        if not all(isinstance(name, str) for name in self.values):
            raise self.error("", f"expected {self.MAPPING}, got {self.shown(value)}")

    def inside(self, value: object, path: str) -> Self:
        return type(self)(value, file=self.file, path=path)

    def error(self, name: str, problem: str) -> MpirtError:
        return ConfigError(f"{self.where(name)}: {problem}")

    @staticmethod
    def shown(value: object) -> str:
        return "nothing" if value is None else _KINDS.get(type(value), "something else")

    def where(self, name: str) -> str:
        """Return file and field, as messages name them."""
        field = self.at(name)
        return f"{self.file}: {field}" if field else self.file

    def has(self, name: str) -> bool:
        return self.values.get(name) not in (None, "", False, [], {})

    def needed(self, name: str) -> str:
        """Return the text in a field that must not be empty."""
        value = self.text(name)
        if not value:
            raise self.error(name, "is missing or empty")
        return value

    def raw(self, name: str) -> object:
        """Return a value that is passed on unread."""
        return self.values.get(name)


_KINDS = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "named fields",
}


def shown(value: object) -> str:
    """Return an invalid value as it is shown in a message."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
