"""
Any bytes as one line of printable ASCII, for a shell that has nothing but its builtin printf to read them.

Owns: the form. No I/O.
"""

from __future__ import annotations


def printf_format(data: bytes) -> bytes:
    """A format string for printf, without quotes, that prints these bytes and is one line of ASCII."""
    # Not by joining bytes, which takes a hundred times the memory of what comes out.
    text = data.decode("latin-1").translate(_ESCAPES).encode()
    # printf would take a leading dash for an option.
    return rb"\055" + text[1:] if text.startswith(b"-") else text


def _escape(byte: int) -> str:
    if byte == ord("\n"):
        return r"\n"
    if byte == ord("%"):
        return "%%"
    if ord(" ") <= byte <= ord("~") and byte not in b"\\'":
        return chr(byte)
    return f"\\{byte:03o}"


_ESCAPES = tuple(map(_escape, range(256)))
