"""
Frozen values and enumerations, cheap to import.

Owns: `value`, which makes of an annotated class what `@dataclass(frozen=True, slots=True)` would, and which
type checkers take for exactly that. Importing dataclasses and making 25 of them costs a remote command 20 ms,
as much as Python with its ssl module; these cost half a millisecond. Fields are positional in the order they
are written, or by name; a `__post_init__` may refuse what can't be.

`Enum` and `IntEnum` are for type checkers those of the enum module, and otherwise as much of them as is used:
unique members with a name and a value, which the class gives in their order, or one by its value. The module would
cost 3 ms and 1 MB.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs its import; type checkers know it by its name

__all__ = ["Enum", "IntEnum", "value"]

if TYPE_CHECKING:
    from enum import Enum, IntEnum
    from typing import TypeVar, dataclass_transform

    T = TypeVar("T")

    @dataclass_transform(frozen_default=True)
    def value(cls: type[T]) -> type[T]: ...

else:

    def value(cls):
        """A class of frozen values out of a class with annotated fields."""
        fields = tuple(cls.__annotations__)
        space = dict(cls.__dict__)
        defaults = {name: space.pop(name) for name in fields if name in space}
        for name in ("__dict__", "__weakref__"):
            space.pop(name, None)
        space.update(
            __slots__=fields, __match_args__=fields, _defaults=defaults,
            __init__=_init, __eq__=_eq, __hash__=_hash, __repr__=_repr, __setattr__=_frozen, __delattr__=_frozen,
        )  # fmt: skip
        return type(cls)(cls.__name__, cls.__bases__, space)

    def _init(self, *args, **named):
        fields = self.__slots__
        if len(args) != len(fields) or named:
            args = _complete(self, args, named)
        for name, given in zip(fields, args, strict=True):
            object.__setattr__(self, name, given)
        check = getattr(self, "__post_init__", None)
        if check is not None:
            check()

    def _complete(self, args, named):
        fields = self.__slots__
        if len(args) > len(fields):
            raise TypeError(f"{type(self).__name__} has {len(fields)} fields, got {len(args)}")
        given = {**self._defaults, **dict(zip(fields, args, strict=False)), **named}
        if len(given) != len(fields) or any(name in named for name in fields[: len(args)]):
            raise TypeError(f"{type(self).__name__} takes {', '.join(fields)}")
        return tuple(given[name] for name in fields)

    def _items(self):
        return tuple(getattr(self, name) for name in self.__slots__)

    def _eq(self, other):
        return _items(self) == _items(other) if type(other) is type(self) else NotImplemented

    def _hash(self):
        return hash((type(self), _items(self)))

    def _repr(self):
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__qualname__}({shown})"

    def _frozen(self, name, *_given):
        raise AttributeError(f"{type(self).__name__}.{name} is frozen")

    class _Members(type):
        """Makes members of what stands in a class's body."""

        def __new__(mcs, name, bases, space):
            own = {key: text for key, text in space.items() if key.startswith("_")}
            cls = type.__new__(mcs, name, bases, own)
            cls._members = tuple(_member(cls, key, space[key]) for key in space if key not in own)
            return cls

        def __iter__(cls):
            return iter(cls._members)

        def __call__(cls, given):
            for member in cls._members:
                if member.value == given:
                    return member
            raise ValueError(f"{given!r} is not a valid {cls.__qualname__}")

    def _member(cls, name, given):
        made = int.__new__(cls, given) if issubclass(cls, int) else object.__new__(cls)
        made.name, made.value = name, given
        setattr(cls, name, made)
        return made

    class Enum(metaclass=_Members):
        """Members that are equal to nothing but themselves."""

        def __repr__(self):
            return f"{type(self).__name__}.{self.name}"

    class IntEnum(int, metaclass=_Members):
        """Members that are numbers."""

        __str__ = int.__repr__

        def __repr__(self):
            return f"{type(self).__name__}.{self.name}"
