"""
Compiles a program of this project: `build.py NAME FOLDER [ARCH...]` makes FOLDER/NAME-1-amd64 and so on of the C
files in the folders NAME and common beside this file.

Owns: the architectures and the compiler's options. Nothing in the C files depends on the architecture: libc does
the system calls, and images/common/frames.c the order of bytes. The compiler is Zig's, from the PyPI package
`ziglang` of the Python that runs this: it brings musl along for each architecture and makes the same bytes each
time.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent

# The number of the frames that each of them speaks.
PROTOCOLS = {"agent": 1, "keeper": 1}
# By Kubernetes' name: the machine as the kernel names it, and as the compiler does.
MACHINES = {
    "amd64": ("x86_64", "x86_64"),
    "arm64": ("aarch64", "aarch64"),
    "ppc64le": ("ppc64le", "powerpc64le"),
    "riscv64": ("riscv64", "riscv64"),
    "s390x": ("s390x", "s390x"),
}
# Those of launchers, which have Debian's Python beside them in the runtime image; and those of workers.
ARCHITECTURES = {"agent": ("amd64", "arm64"), "keeper": tuple(MACHINES)}

# Our own code is made small, what the compiler brings along fast: by -Os alone it copies memory byte by byte.
OPTIONS = (
    *("-static", "-pie", "-fPIE", "-std=c11", "-O2", "-Xclang", "-Os", "-flto", "-s", "-g0"),
    *("-fstack-protector-strong", "-D_FORTIFY_SOURCE=2", "-ffunction-sections", "-fdata-sections"),
    *("-fno-asynchronous-unwind-tables", "-fno-unwind-tables"),
    *("-Wall", "-Wextra", "-Werror"),
    *("-Wl,-z,relro,-z,now,-z,noexecstack", "-Wl,--gc-sections"),
)  # fmt: skip
# riscv64: link-time optimization forgets the ABI that libc has for floats. ppc64le: fast copying takes much room.
MORE_OPTIONS = {"riscv64": ("-fno-lto",), "ppc64le": ("-Os",)}


def architecture() -> str:
    """This machine's."""
    return next(arch for arch, (machine, _) in MACHINES.items() if machine == os.uname().machine)


def file_name(name: str, arch: str) -> str:
    """The protocol's number is part of it: a program that speaks another one is never run."""
    return f"{name}-{PROTOCOLS[name]}-{arch}"


def build(name: str, folder: Path, arch: str, *more: str) -> Path:
    """Compile for one architecture; the file appears whole or not at all. Tests have options of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / file_name(name, arch)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as scratch:
        made = Path(scratch, target.name)
        # Relative names, so that nothing of this machine's paths gets into the file.
        sources = sorted(
            str(path.relative_to(HERE)) for part in (name, "common") for path in (HERE / part).glob("*.c")
        )
        compiler = (sys.executable, "-m", "ziglang", "cc", "-target", f"{MACHINES[arch][1]}-linux-musl")
        subprocess.run(
            (*compiler, *OPTIONS, *MORE_OPTIONS.get(arch, ()), *more, "-o", str(made), *sources),
            cwd=HERE,
            check=True,
        )
        made.chmod(0o755)
        made.replace(target)
    return target


def main(arguments: Sequence[str]) -> int:
    """Build for the architectures that are named, or for all."""
    match list(arguments):
        case [name, folder, *archs] if name in PROTOCOLS and set(archs) <= set(ARCHITECTURES[name]):
            pass
        case _:
            sys.stderr.write(f"usage: build.py {'|'.join(PROTOCOLS)} FOLDER [{'|'.join(MACHINES)}]...\n")
            return 2
    if importlib.util.find_spec("ziglang") is None:
        sys.stderr.write(f"build.py: {sys.executable} has no Zig; try: pip install ziglang==0.17.1\n")
        return 1
    try:
        for arch in archs or ARCHITECTURES[name]:
            build(name, Path(folder).resolve(), arch)
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
