"""
Times, as ssh's options and our own variables have them.

Owns: the form, which is ssh's for both, and the limits. No I/O.
"""

from __future__ import annotations

from mpirt.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# ssh takes weeks, too; nothing that runs for a day can tell the difference.
LONGEST = 86400.0
_FORM = "expected a time such as 30, 10s or 1h30m"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def of_option(name: str, text: str) -> float:
    """The seconds of a setting of ssh's; what is longer than a day is a day. Raises UsageError."""
    seconds = 0.0 if text.lower() == "none" else read_time(text)
    if seconds is None:
        raise UsageError(f"-o {name}={text}: {_FORM}")
    return min(seconds, LONGEST)


def of_variable(environ: Mapping[str, str], name: str, default: float, *, may_be_zero: bool = True) -> float:
    """The seconds of a variable of ours, a day at most. Raises UsageError."""
    text = environ.get(name, "")
    if not text:
        return default
    seconds = read_time(text)
    if seconds is None or seconds > LONGEST or not (seconds or may_be_zero):
        above = "" if may_be_zero else "above 0 and "
        raise UsageError(f"{name}={text[:20]}: {_FORM}, {above}at most a day")
    return seconds


def read_time(text: str) -> float | None:
    """Seconds out of 90, 90s or 1h30m, as ssh reads a time; None where it is none."""
    total, number, had_seconds = 0.0, "", False
    for letter in text.lower() if text[-1:].isalpha() else f"{text}s":
        if letter in "0123456789.":
            number += letter
            continue
        unit = _UNITS.get(letter)
        # Only seconds may have a fraction, and only the last number has no unit.
        if unit is None or not _is_number(number, whole=unit > 1) or (unit == 1 and had_seconds):
            return None
        total, number, had_seconds = total + float(number) * unit, "", had_seconds or unit == 1
    return total


def _is_number(text: str, *, whole: bool) -> bool:
    return text[-1:].isdigit() and text.count(".") <= (0 if whole else 1)
