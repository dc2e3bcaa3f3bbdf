"""
Reads the fields that a user wrote, and reports an invalid one with its path.

Owns: the checks of a field's type and range. A null field counts as missing, as it does for Kubernetes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any, TypeVar

from mpirt.controller.model.quantities import is_quantity
from mpirt.errors import SpecError

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")

MOST = 2**31 - 1
"""The largest number in a field of 32 bits."""

_SHOWN = 60


class Fields:
    """A mapping that the user wrote, and its path in the object."""

    __slots__ = ("path", "values")

    def __init__(self, value: object, path: str) -> None:
        if not isinstance(value, Mapping):
            raise SpecError(path, f"expected an object, got {shown(value)}")
        self.path = path
        self.values: Mapping[str, Any] = value

    def at(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        """Whether the field is set."""
        return self.values.get(name) is not None

    def table(self, name: str) -> Fields:
        """Return the object in a field; empty if it is missing."""
        return Fields(self.values[name] if self.has(name) else {}, self.at(name))

    def needed(self, name: str) -> Fields:
        """Return the object in a required field."""
        if not self.has(name):
            raise SpecError(self.at(name), "is missing")
        return self.table(name)

    def rows(self, name: str) -> list[Fields]:
        """Return the list of objects in a field; empty if it is missing."""
        return [Fields(value, f"{self.at(name)}[{number}]") for number, value in enumerate(self._list(name))]

    def texts(self, name: str) -> list[str]:
        """Return the list of texts in a field; empty if it is missing."""
        for number, value in enumerate(self._list(name)):
            if not isinstance(value, str):
                raise SpecError(f"{self.at(name)}[{number}]", f"expected text, got {shown(value)}")
        return list(self._list(name))

    def text(self, name: str, default: str = "") -> str:
        """Return the text in a field; the default if it is missing."""
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise SpecError(self.at(name), f"expected text, got {shown(value)}")
        return value

    def flag(self, name: str) -> bool | None:
        """Return the boolean in a field; None if it is missing."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, bool):
            raise SpecError(self.at(name), f"expected true or false, got {shown(value)}")
        return value

    def number(self, name: str, *, least: int, most: int = MOST) -> int | None:
        """Return the whole number in a field; None if it is missing."""
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
        """Return one of the choices; the default if the field is missing or empty."""
        value = self.text(name)
        if not value:
            return default
        try:
            return choices(value)
        except ValueError:
            words = ", ".join(choices)
            raise SpecError(self.at(name), f"must be one of {words}, got {shown(value)}") from None

    def labels(self, name: str) -> dict[str, str]:
        """Return a mapping of names to texts, as for labels and annotations; empty if it is missing."""
        table = self.table(name)
        return {key: table.text(key) for key in table.values}

    def quantities(self, name: str) -> dict[str, str]:
        """Return a mapping of resources to quantities; empty if it is missing."""
        table = self.table(name)
        found = {key: value for key, value in table.values.items() if value is not None}
        for key, value in found.items():
            if isinstance(value, bool) or not isinstance(value, int | float | str) or not is_quantity(str(value)):
                raise SpecError(table.at(key), f"expected a quantity such as 2, 500m or 4Gi, got {shown(value)}")
        return {key: str(value) for key, value in found.items()}

    def _list(self, name: str) -> list[Any]:
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise SpecError(self.at(name), f"expected a list, got {shown(value)}")
        return value


class ValidFields(Fields):
    """The same fields, of which an invalid one counts as missing."""

    __slots__ = ()

    def table(self, name: str) -> ValidFields:
        """Return the object in a field; empty if it is missing or invalid."""
        value = self.values.get(name)
        return ValidFields(value if isinstance(value, Mapping) else {}, self.at(name))

    def text(self, name: str, default: str = "") -> str:
        """Return the text in a field; the default if it is missing or invalid."""
        return _valid(partial(super().text, name), default)

    def flag(self, name: str) -> bool | None:
        """Return the boolean in a field; None if it is missing or invalid."""
        return _valid(partial(super().flag, name), None)

    def number(self, name: str, *, least: int, most: int = MOST) -> int | None:
        """Return the whole number in a field; None if it is missing or invalid."""
        return _valid(partial(super().number, name, least=least, most=most), None)

    def choice(self, name: str, choices: type[E], default: E) -> E:
        """Return one of the choices; the default if the field is missing, empty or invalid."""
        return _valid(partial(super().choice, name, choices, default), default)


def _valid(read: Callable[[], T], default: T) -> T:
    try:
        return read()
    except SpecError:
        return default


def shown(value: object) -> str:
    """Return an invalid value as it is shown in a message."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
