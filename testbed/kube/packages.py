"""
The Debian packages that the host itself must have, installed when they are missing.

Only what starts no service and clashes with nothing belongs here; the rest runs from the cache (programs).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from testbed.kube.errors import ClusterError
from testbed.kube.progress import step
from testbed.kube.shell import run

HOST = (
    "debian-archive-keyring",
    "iproute2",
    "ipset",
    "iptables",
    "libseccomp2",
    "mmdebstrap",
    "mount",
    "nftables",
    "openssl",
    "procps",
    "util-linux",
)

# Others may be at work with apt; it waits for its lock so many seconds.
_LOCK_TIMEOUT = 300


def ensure(names: Iterable[str] = HOST) -> None:
    """Install what is missing; the package lists are fetched only when the present ones don't suffice."""
    wanted = _missing(list(names))
    if not wanted:
        return
    with step(f"installing {' '.join(wanted)}"):
        try:
            _apt_get("install", "--yes", "--no-install-recommends", *wanted)
        except ClusterError:
            _apt_get("update", check=False)
            _install_or_say_why(wanted)


def missing(names: Sequence[str], dpkg_says: str) -> list[str]:
    """Which packages are not installed, by what dpkg-query says: a line `name status` for each it knows."""
    installed = {
        line.split()[0].partition(":")[0] for line in dpkg_says.splitlines() if line.endswith(" installed")
    }
    return [name for name in names if name not in installed]


def remedy(names: Sequence[str]) -> str:
    """What to do when packages can't be installed."""
    return f"check the network and the proxy, or run apt-get install {' '.join(names)} yourself; then run again"


def _missing(names: Sequence[str]) -> list[str]:
    # dpkg-query ends with 1 when it doesn't know one of them.
    known = run("dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", *names, check=False)
    return missing(names, known.stdout)


def _install_or_say_why(names: Sequence[str]) -> None:
    try:
        _apt_get("install", "--yes", "--no-install-recommends", *names)
    except ClusterError as error:
        left = _missing(names)
        raise ClusterError(
            f"cannot install the packages {', '.join(left)}: {error.what}", remedy=remedy(left)
        ) from error


def _apt_get(*words: str, check: bool = True) -> None:
    options = ("-qq", "-o", f"DPkg::Lock::Timeout={_LOCK_TIMEOUT}")
    run("apt-get", *options, *words, check=check, env={"DEBIAN_FRONTEND": "noninteractive"})
