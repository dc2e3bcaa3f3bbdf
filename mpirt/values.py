"""
Frozen values, cheap to import.

Owns: `Value`, which makes of an annotated class what `@dataclass(frozen=True, slots=True)` would, and which
type checkers take for exactly that. These cost no more than any class; docs/architecture.md has what dataclasses
would cost the programs that start often. Fields are positional in the order they are written, or by name; a
`__post_init__` may refuse what can't be. Nothing inherits from a value.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs its import; type checkers know it by its name

__all__ = ["Value"]

if TYPE_CHECKING:
    from typing import dataclass_transform

    @dataclass_transform(frozen_default=True)
    class Value: ...

else:

    class _Fields(type):
        """Makes fields of what is annotated in a class's body."""

        def __new__(mcs, name, bases, space):
            # In the body, while there is no class yet: to make a second one of the first would cost as much again.
            fields = tuple(space.get("__annotations__", ()))
            defaults = {field: space.pop(field) for field in fields if field in space}
            space.update(__slots__=fields, __match_args__=fields, _defaults=defaults)
            return type.__new__(mcs, name, bases, space)

    class Value(metaclass=_Fields):
        """Equal to what is of its class and holds the same."""

        def __init__(self, *args, **named):
            fields = self.__slots__
            if len(args) != len(fields) or named:
                args = _complete(type(self), self._defaults, args, named)
            for name, given in zip(fields, args, strict=True):
                object.__setattr__(self, name, given)
            check = getattr(self, "__post_init__", None)
            if check is not None:
                check()

        def __eq__(self, other):
            return _items(self) == _items(other) if type(other) is type(self) else NotImplemented

        def __hash__(self):
            return hash((type(self), _items(self)))

        def __repr__(self):
            shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
            return f"{type(self).__qualname__}({shown})"

        def __setattr__(self, name, *_given):
            raise AttributeError(f"{type(self).__name__}.{name} is frozen")

        __delattr__ = __setattr__

    def _complete(cls, defaults, args, named):
        fields = cls.__slots__
        if len(args) > len(fields):
            raise TypeError(f"{cls.__name__} has {len(fields)} fields, got {len(args)}")
        given = {**defaults, **dict(zip(fields, args, strict=False)), **named}
        if len(given) != len(fields) or any(name in named for name in fields[: len(args)]):
            raise TypeError(f"{cls.__name__} takes {', '.join(fields)}")
        return tuple(given[name] for name in fields)

    def _items(value):
        return tuple(getattr(value, name) for name in value.__slots__)
