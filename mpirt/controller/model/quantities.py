"""
Quantities of resources, as Kubernetes writes them: 2, 0.5, 100m, 4Gi, 1e3.

Owns: what is a quantity, and adding them up. The sum is in the canonical form, in which every program that reads
and writes an object leaves it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal

_FORM = re.compile(r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?")

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_KIBI = 1024
_SMALLEST = Decimal("1e-9")
# Kubernetes cuts quantities to this. A number with a larger exponent than the other is beyond any limit.
_GREATEST, _MOST_ZEROS = Decimal(2**63 - 1), Decimal(100)
# Digits enough for the largest quantities in the smallest unit.
_EXACT = Context(prec=60)


def is_quantity(text: str) -> bool:
    """Whether this is a quantity."""
    return _FORM.fullmatch(text) is not None


def amount(text: str) -> Decimal:
    """Return the number that a quantity stands for. Raises ValueError."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(f"not a quantity: {text!r}")
    number, suffix = Decimal(found["number"]), found["suffix"] or ""
    if suffix in _BINARY:
        return _cut(number * Decimal(_KIBI) ** _BINARY[suffix])
    exponent = Decimal(_DECIMAL[suffix] if suffix in _DECIMAL else suffix[1:])
    return _cut(number.scaleb(max(-_MOST_ZEROS, min(exponent, _MOST_ZEROS))))


def total(quantities: Iterable[str]) -> str:
    """Return the sum; it has the form of the first quantity that isn't zero."""
    found = [(amount(one), _is_binary(one)) for one in quantities]
    kept = _cut(sum((value for value, _ in found), Decimal(0))).quantize(_SMALLEST, ROUND_CEILING, _EXACT)
    binary = next((is_binary for value, is_binary in found if value), False)
    return _in_binary(kept) if binary and abs(kept) >= _KIBI else _in_decimal(kept)


def greatest(quantities: Iterable[str]) -> str:
    """Return the greatest of them, of which there is at least one."""
    return total([max(quantities, key=amount)])


def _cut(value: Decimal) -> Decimal:
    return max(-_GREATEST, min(value, _GREATEST))


def _is_binary(text: str) -> bool:
    return text.endswith("i")


def _in_binary(value: Decimal) -> str:
    whole = int(value.to_integral_value(rounding=ROUND_CEILING))
    suffix = ""
    for name in _BINARY:
        if whole % _KIBI:
            break
        whole, suffix = whole // _KIBI, name
    return f"{whole}{suffix}"


def _in_decimal(value: Decimal) -> str:
    if not value:
        return "0"
    suffix, exponent = next(
        (name, exponent)
        for name, exponent in sorted(_DECIMAL.items(), key=lambda one: -one[1])
        if value.scaleb(-exponent) % 1 == 0
    )
    return f"{int(value.scaleb(-exponent))}{suffix}"
