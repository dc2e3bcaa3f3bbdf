"""
What `ssh -s` starts: a server that goes by a name and has no place of its own.

Owns: the one that is known, sftp. Imported only when a subsystem is asked for: scp and sftp ask, launchers don't.
"""

from __future__ import annotations

# Where Debian, Red Hat, Alpine (Arch and SUSE, too) and those who build it themselves have it.
_PLACES = (
    "/usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server /usr/lib/ssh/sftp-server "
    "/usr/libexec/sftp-server /usr/lib/sftp-server /usr/local/libexec/sftp-server"
)
_MISSING = "mpirt-rsh: no sftp-server in this container; install one, copy by tar, or with: scp -O"

# For the pod's shell. It is not exported, so what is started does not see the variable.
SFTP = (
    f'for mpirt_place in $(command -v sftp-server) {_PLACES}; do [ -x "$mpirt_place" ] && exec "$mpirt_place"; '
    f'done; echo "{_MISSING}" >&2; exit 127'
)
