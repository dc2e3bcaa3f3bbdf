r"""
The way into a pod on one connection: from the bootstrap in the exec's URL to a keeper that speaks frames.

Owns: the lines that find a keeper in the pod or send it one, the reading of what comes back before there is a
command, and what is sent in answer to what. No I/O, no clock.

A greeting is one line for `eval`. Where a keeper can be executed, the shell becomes its bridge, which says KEEPER
on stdout; only frames follow. Where there is none, the shell says HELLO on stderr with the processor's name, and
evaluates one more line: an upload. After a second HELLO nothing can hold a command there. A file that can't be
executed ends the shell that tries to become it, or worse, is read as a script: so the name comes from
/proc/cpuinfo, and `probe` is run first.

An answer is `\x01mpirt-NONCE WORD [WORDS]\n`. The nonce keeps another session's answers from being taken for it.

The keeper's bridge must have the exec's stderr open, though it never writes to it: containerd ends an exec's stdin
as soon as one of its outputs ends.
"""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING

from mpirt import names
from mpirt.errors import PeerError, Unreachable
from mpirt.keeper import ARCHITECTURES, file_name
from mpirt.kubeapi.request.channels import STDERR, STDOUT, Channels, Output, Status
from mpirt.rsh.invocation.options import read_number
from mpirt.rsh.protocol.keeperframes import PROTOCOL
from mpirt.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

# All that the API server, its audit log and the pod's process list get to see of it.
BOOTSTRAP = ("/bin/sh", "-c", 'IFS= read -r mpirt && eval "$mpirt"')

# Where the controller's ConfigMap has it.
_MOUNTED = f"{names.MPI_FOLDER}/{file_name('$mpirt_arch')}"
# What runtimes and shells complain of before there is an answer; more is no complaint.
_MOST_BEFORE = 64 * 1024
# How much of an invalid answer an error shows.
_SHOWN = 128
_U64 = 2**64 - 1

# Only builtins. The first significant line of /proc/cpuinfo decides.
_FIND = r"""
mpirt_arch=none; while read -r mpirt_x mpirt_y; do case "$mpirt_x $mpirt_y" in
vendor_id*IBM*) mpirt_arch=s390x; break;; vendor_id*) mpirt_arch=amd64; break;;
"CPU implementer"*) mpirt_arch=arm64; break;; "isa : rv64"*) mpirt_arch=riscv64; break;;
"cpu : POWER"*) mpirt_arch=ppc64le; break;; esac; done </proc/cpuinfo;
case $mpirt_arch in DIGESTS *) mpirt_d=none;; esac;
for mpirt_x in "MOUNTED" FOLDERS; do case $mpirt_x in /etc/mpi/*) ;; *) mpirt_x=$mpirt_x/mpirt-keeper-$mpirt_d;
[ -O "$mpirt_x" ] && [ ! -h "$mpirt_x" ] || continue; mpirt_x=$mpirt_x/keeper;; esac;
[ -x "$mpirt_x" ] && "$mpirt_x" probe 2>/dev/null && exec "$mpirt_x" VERB NONCE; done;
printf '\001mpirt-NONCE HELLO %s\n' "$mpirt_arch" >&2; IFS= read -r mpirt && eval "$mpirt"
"""

_FOLDERS = '"${TMPDIR:-/tmp}" /tmp /var/tmp "${HOME:-/tmp}"'

# The file is whole before it has its name, so a shell that finds it can execute it.
_UPLOAD = r"""
mpirt_umask=$(umask); umask 077; for mpirt_x in FOLDERS; do mpirt_x=$mpirt_x/mpirt-keeper-DIGEST;
mkdir "$mpirt_x" 2>/dev/null;
[ -d "$mpirt_x" ] && [ -O "$mpirt_x" ] && [ ! -h "$mpirt_x" ] || continue;
{ printf "$mpirt_elf" >"$mpirt_x/NONCE" && chmod 700 "$mpirt_x/NONCE" && "$mpirt_x/NONCE" probe &&
mv -f "$mpirt_x/NONCE" "$mpirt_x/keeper"; } 2>/dev/null && umask "$mpirt_umask" &&
exec "$mpirt_x/keeper" VERB NONCE;
{ rm -f "$mpirt_x/NONCE"; rmdir "$mpirt_x"; } 2>/dev/null; done; umask "$mpirt_umask"; unset mpirt_elf;
printf '\001mpirt-NONCE HELLO none\n' >&2; IFS= read -r mpirt && eval "$mpirt"
"""

_BRIDGE, _ATTACH = "bridge", "attach"

_NO_PLACE = (
    "no folder in the container takes a program and may execute it; mount an emptyDir at /tmp, without noexec, or "
    f"the ConfigMap of an mpirt job, which has the keeper, at {names.MPI_FOLDER}"
)
_NOT_INSTALLED = "this installation of mpirt has no keeper to send; install mpirt's wheel, or use its image"


class NotStarted(Unreachable):
    """The way to the container was open, but no shell answered."""


class NotAnswered(NotStarted):
    """It was still open when there was no time left to wait for an answer."""


class Keepers(Value):
    """The keepers that can be sent: a static program for each processor, by Kubernetes' name for it."""

    files: Mapping[str, bytes]

    def digest(self, arch: str) -> str:
        """A name for the file: another file has another."""
        data = self.files[arch]
        return f"{PROTOCOL}-{len(data)}-{binascii.crc32(data):08x}"


# What is sent


def greeting(nonce: str, keepers: Keepers, *, attach: bool = False) -> bytes:
    """The first line to send. With `attach` it asks for the session that there is already."""
    digests = " ".join(f"{arch}) mpirt_d={keepers.digest(arch)};;" for arch in sorted(keepers.files))
    return _line(_FIND, nonce, attach=attach, DIGESTS=digests, MOUNTED=_MOUNTED, FOLDERS=_FOLDERS)


def upload(nonce: str, keepers: Keepers, arch: str, *, attach: bool = False) -> bytes:
    """The two lines that answer HELLO where there is a keeper to send: the file, and what becomes of it."""
    script = _line(_UPLOAD, nonce, attach=attach, DIGEST=keepers.digest(arch), FOLDERS=_FOLDERS)
    return b"IFS= read -r mpirt_elf; " + script + printf_format(keepers.files[arch]) + b"\n"


def _line(template: str, nonce: str, *, attach: bool, **words: str) -> bytes:
    text = " ".join(template.split("\n")).strip()
    for name, word in {"NONCE": nonce, "VERB": _ATTACH if attach else _BRIDGE, **words}.items():
        text = text.replace(name, word)
    return text.encode() + b"\n"


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


# What comes back, and what follows


class KeeperFound(Value):
    """A keeper's bridge is at the other end."""

    leftover: bytes
    """The first bytes of its frames."""
    container_start: int
    """When its container's first process started, in clock ticks; 0 where that is not known."""


class NoKeeper(Value):
    """There is no keeper, and none can be sent."""

    why: str


class NoSession(Value):
    """There is no session of this nonce any more."""

    container_start: int
    """When the first process of the container started in which it was looked for; 0 where that is not known."""


class ToSend(Value):
    """This is to be sent."""

    data: bytes


Found = KeeperFound | NoKeeper | NoSession | ToSend | Status


class Entrance:
    """One connection's. `channels` is what its messages are read by, afterwards too."""

    def __init__(self, nonce: str, keepers: Keepers, *, attach: bool = False) -> None:
        self.channels = Channels()
        self._nonce, self._keepers, self._attach = nonce, keepers, attach
        self._opening = b"\x01mpirt-" + nonce.encode() + b" "
        self._held = {STDOUT: b"", STDERR: b""}
        self._uploaded = False

    def greeting(self) -> bytes:
        """The first words."""
        return greeting(self._nonce, self._keepers, attach=self._attach)

    def receive(self, message: bytes) -> Found | None:
        """What a message leads to. Raises PeerError."""
        part = self.channels.receive(message)
        if not isinstance(part, Output):
            return part
        data = self._held[part.stream] + part.data
        begin = data.find(self._opening)
        end = data.find(b"\n", begin) if begin >= 0 else -1
        if end < 0:
            if len(data) > _MOST_BEFORE:
                raise PeerError(f"{len(data)} bytes came from the pod before its shell answered")
            self._held[part.stream] = data
            return None
        self._held[part.stream] = b""
        return self._answered(data[begin + len(self._opening) : end], data[end + 1 :])

    def _answered(self, answer: bytes, leftover: bytes) -> Found:
        """What follows from what stands between the nonce and the newline. Raises PeerError."""
        match answer.decode("latin-1").split(" "):
            case ["HELLO", arch] if arch in ("none", *ARCHITECTURES):
                return self._shell(arch)
            case ["KEEPER", number, word] if number == str(PROTOCOL) and (start := _start(word)) is not None:
                return KeeperFound(leftover, start)
            case ["GONE", word] if (start := _start(word)) is not None:
                if not self._attach:
                    raise PeerError("a keeper that was asked for a new session says that there is none")
                return NoSession(start)
        raise PeerError(f"invalid answer from the shell in the pod: {answer[:_SHOWN]!r}")

    def _shell(self, arch: str) -> Found:
        if self._uploaded:
            return NoKeeper(_NO_PLACE)
        if not self._keepers.files:
            return NoKeeper(_NOT_INSTALLED)
        if arch not in self._keepers.files:
            there = ", ".join(sorted(self._keepers.files))
            return NoKeeper(f"there is no keeper for its processor ({arch}); there are keepers for {there}")
        self._uploaded = True
        return ToSend(upload(self._nonce, self._keepers, arch, attach=self._attach))


def _start(word: str) -> int | None:
    """When a container's first process started, in the kernel's clock ticks."""
    start = read_number(word)
    return start if start is not None and start <= _U64 else None
