r"""
The first words with a pod's shell: from the bootstrap in the exec's URL to a keeper that speaks frames.

Owns: the lines that find a keeper in the pod, send it one or go on without, and the reading of what comes back
before there is a command. No I/O.

A greeting is one line for `eval`. Where a keeper can be executed, the shell becomes its bridge, which says KEEPER
on stdout; only frames follow. Where there is none, the shell says HELLO on stderr with the processor's name, and
evaluates one more line: an `upload`, or the wrapper's script. A file that can't be executed ends the shell that
tries to become it, or worse, is read as a script: so the name comes from /proc/cpuinfo, and `probe` is run first.

The keeper's bridge must have the exec's stderr open, though it never writes to it: containerd ends an exec's stdin
as soon as one of its outputs ends.
"""

from __future__ import annotations

import binascii

from mpirt import names
from mpirt.errors import PeerError
from mpirt.keeper import file_name
from mpirt.kubeapi.request.channels import STDERR, STDOUT, Output
from mpirt.rsh.protocol.keeperframes import PROTOCOL
from mpirt.rsh.protocol.markers import Gone, Hello, KeeperHere, Marker, parse_marker
from mpirt.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# All that the API server, its audit log and the pod's process list get to see of it.
BOOTSTRAP = ("/bin/sh", "-c", 'IFS= read -r mpirt && eval "$mpirt"')

# Where the controller's ConfigMap has it.
_MOUNTED = f"{names.MPI_FOLDER}/{file_name('$mpirt_arch')}"
# What runtimes and shells complain of before there is an answer; more is no complaint.
_MOST_BEFORE = 64 * 1024

_FIND = r"""
mpirt_arch=none; while read -r mpirt_x mpirt_y; do case "$mpirt_x $mpirt_y" in vendor_id*IBM*) break;;
vendor_id*) mpirt_arch=amd64; break;; "CPU implementer"*) mpirt_arch=arm64; break;; esac; done </proc/cpuinfo;
case $mpirt_arch in DIGESTS *) mpirt_d=none;; esac;
for mpirt_x in "MOUNTED" FOLDERS; do case $mpirt_x in /etc/mpi/*) ;; *) mpirt_x=$mpirt_x/mpirt-keeper-$mpirt_d;
[ -O "$mpirt_x" ] && [ ! -h "$mpirt_x" ] || continue; mpirt_x=$mpirt_x/keeper;; esac;
[ -x "$mpirt_x" ] && "$mpirt_x" probe 2>/dev/null && exec "$mpirt_x" VERB NONCE; done;
printf '\001mpirt-NONCE HELLO %s\n' "$mpirt_arch" >&2; IFS= read -r mpirt && eval "$mpirt"
"""

_FOLDERS = '"${TMPDIR:-/tmp}" /tmp /var/tmp "${HOME:-/tmp}"'

# The file is whole before it has its name, so whoever finds it can execute it.
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


class Keepers(Value):
    """The keepers that can be sent: a static program for each processor, by Kubernetes' name for it."""

    files: Mapping[str, bytes]

    def digest(self, arch: str) -> str:
        """A name for the file: another file has another."""
        data = self.files[arch]
        return f"{PROTOCOL}-{len(data)}-{binascii.crc32(data):08x}"


def greeting(nonce: str, keepers: Keepers, *, attach: bool = False) -> bytes:
    """The first line to send. With `attach` it asks for the session that there is already."""
    digests = " ".join(f"{arch}) mpirt_d={keepers.digest(arch)};;" for arch in sorted(keepers.files))
    return _line(_FIND, nonce, attach=attach, DIGESTS=digests, MOUNTED=_MOUNTED, FOLDERS=_FOLDERS)


def upload(nonce: str, keepers: Keepers, arch: str, *, attach: bool = False) -> bytes:
    """The two lines that answer HELLO where there is a keeper to send: the file, and what becomes of it."""
    from mpirt.rsh.protocol.printf import printf_format  # noqa: PLC0415  most pods have it already

    script = _line(_UPLOAD, nonce, attach=attach, DIGEST=keepers.digest(arch), FOLDERS=_FOLDERS)
    return b"IFS= read -r mpirt_elf; " + script + printf_format(keepers.files[arch]) + b"\n"


def _line(template: str, nonce: str, *, attach: bool, **words: str) -> bytes:
    text = " ".join(template.split("\n")).strip()
    for name, word in {"NONCE": nonce, "VERB": _ATTACH if attach else _BRIDGE, **words}.items():
        text = text.replace(name, word)
    return text.encode() + b"\n"


class Answers:
    """What comes on one connection before there is a command: looks for the one line that matters."""

    __slots__ = ("_held", "_opening")

    def __init__(self, nonce: str) -> None:
        self._opening = b"\x01mpirt-" + nonce.encode() + b" "
        self._held = {STDOUT: b"", STDERR: b""}

    def receive(self, output: Output) -> tuple[Marker | None, bytes]:
        """The line, if it is here, and the bytes behind it. Raises PeerError."""
        data = self._held[output.stream] + output.data
        begin = data.find(self._opening)
        end = data.find(b"\n", begin) if begin >= 0 else -1
        if end < 0:
            if len(data) > _MOST_BEFORE:
                raise PeerError(f"{len(data)} bytes came from the pod before its shell answered")
            self._held[output.stream] = data
            return None, b""
        self._held[output.stream] = b""
        marker = parse_marker(data[begin + len(self._opening) : end])
        if not isinstance(marker, Hello | KeeperHere | Gone):
            raise PeerError(f"the shell in the pod said {marker} out of turn")
        return marker, data[end + 1 :]
