"""
Reading what a user wrote, field by field, with the path of each in the message when it is wrong.

Owns: the checks of a field's kind and range. A missing field and a null one are the same, as they are for
Kubernetes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from mpirt.errors import SpecError

E = TypeVar("E", bound=StrEnum)

_SHOWN = 60


class Fields:
    """A mapping of the user's, and where it stands."""

    __slots__ = ("path", "values")

    def __init__(self, value: object, path: str) -> None:
        if not isinstance(value, Mapping):
            raise SpecError(path, f"expected an object, got {shown(value)}")
        self.path = path
        self.values: Mapping[str, Any] = value

    def at(self, name: str) -> str:
        """The path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        """Whether the field is given."""
        return self.values.get(name) is not None

    def table(self, name: str) -> Fields:
        """An object in the field; missing is empty."""
        return Fields(self.values[name] if self.has(name) else {}, self.at(name))

    def needed(self, name: str) -> Fields:
        """An object that has to be there."""
        if not self.has(name):
            raise SpecError(self.at(name), "is missing")
        return self.table(name)

    def rows(self, name: str) -> list[Fields]:
        """A list of objects."""
        return [Fields(value, f"{self.at(name)}[{number}]") for number, value in enumerate(self._list(name))]

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        for number, value in enumerate(self._list(name)):
            if not isinstance(value, str):
                raise SpecError(f"{self.at(name)}[{number}]", f"expected text, got {shown(value)}")
        return list(self._list(name))

    def text(self, name: str, default: str = "") -> str:
        """A text; missing is the default."""
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise SpecError(self.at(name), f"expected text, got {shown(value)}")
        return value

    def flag(self, name: str) -> bool | None:
        """True, false, or not said."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, bool):
            raise SpecError(self.at(name), f"expected true or false, got {shown(value)}")
        return value

    def number(self, name: str, *, least: int, most: int = 2**31 - 1) -> int | None:
        """A whole number, or nothing."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise SpecError(self.at(name), f"expected a whole number, got {shown(value)}")
        if value < least:
            raise SpecError(self.at(name), f"must be at least {least}, got {value}")
        if value > most:
            raise SpecError(self.at(name), f"must be at most {most}, got {value}")
        return value

    def choice(self, name: str, choices: type[E], default: E) -> E:
        """One of a few words; missing or empty is the default."""
        value = self.text(name)
        if not value:
            return default
        try:
            return choices(value)
        except ValueError:
            words = ", ".join(choices)
            raise SpecError(self.at(name), f"must be one of {words}, got {shown(value)}") from None

    def labels(self, name: str) -> dict[str, str]:
        """Names and texts, as labels and annotations are."""
        table = self.table(name)
        return {key: table.text(key) for key in table.values}

    def _list(self, name: str) -> list[Any]:
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise SpecError(self.at(name), f"expected a list, got {shown(value)}")
        return value


def shown(value: object) -> str:
    """A wrong value, for a message."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
