"""
JSON text into what it says, by the scanner that the json module is made of.

Owns: the only use of `_json`. The module around it brings re along; docs/architecture.md has what that costs every
look for hosts. `_json` is CPython's own business, so where it is missing the module itself is taken. One
difference: NaN and Infinity, which are no JSON, are refused.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

_BLANKS = " \t\n\r"


def parse_json(data: bytes | str) -> object:
    """Read one value. Raises ValueError where it isn't one, RecursionError where it is too deep."""
    text = data if isinstance(data, str) else data.decode()
    start = len(text) - len(text.lstrip(_BLANKS))
    try:
        value, end = _scanner()(text, start)
    except StopIteration as error:
        raise ValueError("there is no value") from error
    if text[end:].strip(_BLANKS):
        raise ValueError("there is more than one value")
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


class _Settings:
    """What the scanner asks of whoever makes it."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = staticmethod(_refuse)


def _scanner() -> Callable[[str, int], tuple[object, int]]:
    try:
        from _json import make_scanner  # noqa: PLC0415
    except ImportError:
        from json import JSONDecoder  # noqa: PLC0415

        return JSONDecoder(parse_constant=_refuse).raw_decode
    # Any object with the settings will do.
    scanner: Callable[[str, int], tuple[object, int]] = make_scanner(_Settings)  # type: ignore[arg-type]
    return scanner
