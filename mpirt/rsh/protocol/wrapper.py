r"""
The remote side of a session, as bytes: what to start, the first line to send it, and the lines after that.

Owns: the payload line, the client's control lines. The script itself is in script.py, the answers are read by
markers.py, the bootstrap that evaluates the payload is in greeting.py. No I/O.

How the command's stdin travels, and why so. v4 of the exec protocol can't end stdin without ending the
connection, the same stream must carry signs of life, and a server stops answering pings when nobody reads the
stdin it delivers. So stdin goes in pieces, one at a time: `watch` in the pod always takes a piece at once,
`feed` writes it to the command and may block there without harm, and only its ACK makes room for the next. With
`dd` in the pod a piece is raw (10 to 40 MB/s on a local pipe, two forks a piece); without, it is text that the
shell's own printf turns into bytes, right for every byte but slow (0.5 MB/s). The limits: a command that closes
its stdin stops the flow but isn't seen to have done so, and a piece that is under way when the client dies
never reaches the command, which gets TERM instead.
"""

from __future__ import annotations

from mpirt.rsh.invocation.order import SHELL, Order
from mpirt.rsh.protocol.printf import printf_format
from mpirt.rsh.protocol.script import GREETING, SCRIPT

GO = b"GO\n"
ALIVE = b"\n"
BEAT = b"B\n"
END_OF_STDIN = b"E\n"

# Large, for each costs the pod two forks; and small enough for a shell's dd to hold in memory.
RAW_PIECE = 128 * 1024
# Read byte by byte, twice, and grown fourfold at worst.
TEXT_PIECE = 16 * 1024

# Names that the script has in common with what stands around it.
_SHARED = ("nonce", "stdin", "grace", "tick", "patience", "command")
_LETTERS = "abcdefghijklmnopqrstuvwxyz_"
_CAPITALS = 26

# execve takes 128 KiB per argument; a longer command is evaluated by the wrapper's own shell instead.
_LONGEST_ARGUMENT = 120_000


def payload(order: Order) -> bytes:
    """The first two lines to send: a greeting that is answered by HELLO, and the whole script as one line."""
    return GREETING.strip().replace("NONCE", order.nonce).encode() + b"\n" + _evaluated(order)


def script(order: Order) -> bytes:
    """The whole script as one line, for a shell that has said HELLO."""
    return b"mpirt_nonce=" + order.nonce.encode() + b"; " + _evaluated(order)


def _evaluated(order: Order) -> bytes:
    return b"eval \"$(printf '" + printf_format(_script(order)) + b"')\"\n"


def piece(data: bytes, *, raw: bool) -> bytes:
    """A piece of stdin: at most RAW_PIECE bytes raw, TEXT_PIECE as text."""
    if raw:
        return b"D%d\n%b" % (len(data), data)
    return b"P" + printf_format(data) + b"\n"


def passing_on(signal: int) -> bytes:
    """The line that gives the command's program a signal."""
    return b"S%d\n" % signal


def ending_by(signal: int) -> bytes:
    """
    The line that gives it to all of the command for good: after its end the wrapper cleans up its session.

    Said again, it reaches what was started meanwhile.
    """
    return b"K%d\n" % signal


def _script(order: Order) -> bytes:
    settings = {
        "stdin": "some" if order.has_stdin else "none",
        "grace": str(order.grace),
        "tick": f"{order.tick:g}",
        "patience": str(order.patience),
    }
    lines = [f"mpirt_{name}={text}".encode() for name, text in settings.items()]
    return b"\n".join([*lines, _command(order), _SCRIPT])


def _command(order: Order) -> bytes:
    exports = [
        b"export %b=%b" % (name.encode(), _quoted(text.encode(errors="surrogateescape")))
        for name, text in order.environment.items()
    ]
    return b"\n".join([b"mpirt_command() {", *exports, _start(order), b"}"])


def _start(order: Order) -> bytes:
    shell = order.shell.encode(errors="surrogateescape")
    program = shell if order.shell == SHELL else _quoted(shell)
    if len(order.command) <= _LONGEST_ARGUMENT:
        return b"exec %b -c %b" % (program, _quoted(order.command))
    if order.shell == SHELL:
        return b"unset mpirt_nonce; eval " + _quoted(order.command)
    # In several arguments, which that shell joins. The first line of what it evaluates takes them away again.
    ends = range(0, len(order.command), _LONGEST_ARGUMENT)
    parts = b" ".join(_quoted(order.command[start : start + _LONGEST_ARGUMENT]) for start in ends)
    joined = "".join(f"${{{number}}}" for number in range(1, len(ends) + 1)).encode()
    return b"exec %b -c 'eval \"shift $#\n%b\"' %b %b" % (program, joined, program, parts)


def _quoted(text: bytes) -> bytes:
    return b"'" + text.replace(b"'", rb"'\''") + b"'"


def _essential(script: str) -> bytes:
    """The script without comments and indentation, with short names: every byte is a system call in the pod."""
    lines = (line.strip() for line in script.splitlines())
    text = "\n".join(line for line in lines if line and not line.startswith("#"))
    first, *pieces = text.split("mpirt_")
    names: dict[str, str] = {}
    found = [first]
    for piece in pieces:
        rest = piece.lstrip(_LETTERS)
        name = piece[: len(piece) - len(rest)]
        short = f"mpirt_{name}" if name in _SHARED else names.setdefault(name, _short(len(names)))
        found.append(short + rest)
    return "".join(found).encode()


def _short(number: int) -> str:
    """A name that ends with a capital: nothing behind it can be taken for a part of it."""
    rest, letter = divmod(number, _CAPITALS)
    return f"_m{rest or ''}{chr(ord('A') + letter)}"


_SCRIPT = _essential(SCRIPT)
