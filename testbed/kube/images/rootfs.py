"""
Root file systems out of Debian packages, by mmdebstrap.

It runs in a mount and a process namespace of its own, which end with us: a killed build leaves neither a
mount nor a process, only files in its work folder.
"""

from __future__ import annotations

import shlex
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from testbed.kube import aptroot, aptsources
from testbed.kube.errors import ClusterError
from testbed.kube.images.recipes import SLIM, Base, Recipe
from testbed.kube.shell import output, run

_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_MERGED_USR = "/usr/share/mmdebstrap/hooks/merged-usr"

# Of the host's apt configuration, what it takes to reach the mirror, and when to trust an old one.
_TRANSPORT = ("Acquire::Check-", "Acquire::ForceIPv", "Acquire::http", "Acquire::https")

_APT_OPTIONS = (
    'Acquire::Languages "none"',
    'Acquire::Retries "3"',
    # The cache may be where apt's own user can't look.
    'APT::Sandbox::User "root"',
)

_DPKG_OPTIONS = (
    "force-unsafe-io",
    "path-exclude=/usr/share/doc/*",
    "path-exclude=/usr/share/info/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/man/*",
)

_REMEDY = "if a download failed, check the network and the proxy; then run again, it goes on with what is missing"

_SHELL_PROGRAMS = frozenset({"dbclient", "dropbear", "in.rshd", "rlogin", "rsh", "rshd", "slogin", "ssh", "sshd"})


@dataclass(frozen=True, slots=True)
class Mirror:
    """Where Debian's archive is, as the host's own apt knows it, and what it takes to reach it."""

    uri: str
    transport: tuple[str, ...] = ()

    def source(self, suite: str) -> str:
        return f"deb [signed-by={_KEYRING}] {self.uri} {suite} main"


def host_mirror() -> Mirror:
    """The mirror that the host's apt uses. All of Debian's suites are there, whichever the host runs."""
    entries = aptroot.host_entries()
    sources = aptsources.bookworm_sources(entries)
    if not sources:
        raise ClusterError(aptroot.no_source(entries), remedy=aptroot.NO_SOURCE_REMEDY)
    return Mirror(sources[0].uri, transport_options(output("apt-config", "dump")))


def transport_options(apt_config: str) -> tuple[str, ...]:
    """Of what `apt-config dump` prints, the lines about proxies, certificates and dates."""
    return tuple(line for line in apt_config.splitlines() if line.startswith(_TRANSPORT))


def image_argv(recipe: Recipe, mirror: Mirror, target: Path, built: Sequence[Path] = ()) -> list[str]:
    """mmdebstrap's words for an image's root file system, written to `target` as a tar. `built` goes into it."""
    hooks = []
    if recipe.unwanted:
        hooks.append(f'chroot "$1" dpkg --purge --force-depends {shlex.join(recipe.unwanted)}')
    if recipe.finish.exists():
        hooks.append(script_hook(recipe.finish, *built))
    hooks.append(script_hook(SLIM))
    if recipe.proof.exists():
        hooks.append(script_hook(recipe.proof))
    options = [
        *_package_options(recipe.base, recipe.packages, mirror),
        *(_hook(recipe.base, hook) for hook in hooks),
    ]
    return ["mmdebstrap", *options, "--format=tar", recipe.suite, str(target), mirror.source(recipe.suite)]


def scratch_argv(suite: str, packages: Sequence[str], mirror: Mirror, hook: str) -> list[str]:
    """mmdebstrap's words for a root file system in which `hook` does its work, and that is then thrown away."""
    options = [*_package_options("essential", packages, mirror), _hook("essential", hook)]
    return ["mmdebstrap", *options, "--format=null", suite, "-", mirror.source(suite)]


def script_hook(script: Path, *words: Path) -> str:
    """A hook that runs a script of ours on the host, with the root file system as its first argument."""
    return f'sh {shlex.quote(str(script))} "$1" {shlex.join(map(str, words))}'.rstrip()


def build(argv: Sequence[str], scratch: Path) -> None:
    """Run mmdebstrap with `scratch` for its temporary files."""
    # With --kill-child the namespace's processes end with unshare, which ends with the thread that started it.
    confined = ("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child")
    try:
        run(*confined, "--mount-proc", *argv, env={"TMPDIR": str(scratch)})
    except ClusterError as error:
        raise ClusterError(error.what, remedy=_REMEDY) from error


def check_no_remote_shell(tar: Path) -> None:
    """Raise if a test could pass by ssh or one of its kind instead of by what it tests."""
    with tarfile.open(tar) as members:
        found = remote_shells(members.getnames())
    if found:
        raise ClusterError(
            f"the image has {', '.join(found)}", remedy="add its package to the recipe's `unwanted`"
        )


def remote_shells(names: Iterable[str]) -> list[str]:
    """Of a root file system's files, remote shells and their servers."""
    paths = map(PurePosixPath, names)
    return sorted(
        str(path) for path in paths if path.name in _SHELL_PROGRAMS and path.parent.name in {"bin", "sbin"}
    )


def _package_options(base: Base, packages: Sequence[str], mirror: Mirror) -> list[str]:
    options = ["--mode=root", f"--variant={base}", f"--include={','.join(packages)}"]
    if base == "essential":
        # Else apt chooses a package that merges /usr with the help of all of perl.
        options.append(f"--hook-dir={_MERGED_USR}")
    options += [f"--aptopt={option}" for option in (*_APT_OPTIONS, *mirror.transport)]
    return options + [f"--dpkgopt={option}" for option in _DPKG_OPTIONS]


def _hook(base: Base, hook: str) -> str:
    # mmdebstrap does not run the one for the end of the work when packages are only extracted.
    return f"--extract-hook={hook}" if base == "extract" else f"--customize-hook={hook}"
