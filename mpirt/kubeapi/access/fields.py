"""
What others have written: untyped YAML or JSON field by field, and text that is repeated in a message.

Owns: the checks of a value's kind, with its place for the message. Values themselves are never shown: any of them
may be a secret.
"""

from __future__ import annotations

from mpirt.errors import ConfigError


class Fields:
    """A mapping whose fields are read by name and kind. A missing field and a null one are the same."""

    __slots__ = ("_values", "file", "path")

    def __init__(self, value: object, *, file: str, path: str = "") -> None:
        self.file = file
        self.path = path
        if not (isinstance(value, dict) and all(isinstance(name, str) for name in value)):
            raise ConfigError(f"{self.where('')}: expected named fields, got {_kind(value)}")
        self._values: dict[str, object] = value

    def where(self, name: str) -> str:
        """File and field, as messages name them."""
        field = ".".join(part for part in (self.path, name) if part)
        return f"{self.file}: {field}" if field else self.file

    def has(self, name: str) -> bool:
        """Whether the field holds anything: an empty text counts as nothing, as it does for kubectl."""
        return self._values.get(name) not in (None, "", False, [], {})

    def text(self, name: str) -> str:
        """A text field; missing is empty."""
        value = self._values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ConfigError(f"{self.where(name)}: expected text, got {_kind(value)}; put it in quotes")
        return value

    def needed(self, name: str) -> str:
        """A text field that must not be empty."""
        value = self.text(name)
        if not value:
            raise ConfigError(f"{self.where(name)}: is missing or empty")
        return value

    def flag(self, name: str) -> bool:
        """A true or false; missing is false."""
        value = self._values.get(name)
        if value is not None and not isinstance(value, bool):
            raise ConfigError(f"{self.where(name)}: expected true or false, got {_kind(value)}")
        return bool(value)

    def table(self, name: str) -> Fields:
        """Fields inside the field; missing is empty."""
        value = self._values.get(name)
        return Fields({} if value is None else value, file=self.file, path=self._inside(name))

    def rows(self, name: str) -> list[Fields]:
        """A list of fields."""
        place = self._inside(name)
        return [
            Fields(value, file=self.file, path=f"{place}[{number}]")
            for number, value in enumerate(self._list(name))
        ]

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        found = []
        for number, value in enumerate(self._list(name)):
            if not isinstance(value, str):
                problem = f"expected text, got {_kind(value)}; put it in quotes"
                raise ConfigError(f"{self.where(name)}[{number}]: {problem}")
            found.append(value)
        return found

    def raw(self, name: str) -> object:
        """The value, to be passed on unread."""
        return self._values.get(name)

    def _inside(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _list(self, name: str) -> list[object]:
        value = self._values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise ConfigError(f"{self.where(name)}: expected a list, got {_kind(value)}")
        return value


_KINDS = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "named fields",
}


def _kind(value: object) -> str:
    return "nothing" if value is None else _KINDS.get(type(value), "something else")
