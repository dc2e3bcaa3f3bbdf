"""
Compiles the keeper: `build.py FOLDER [ARCH...]` makes FOLDER/keeper-1-amd64 and FOLDER/keeper-1-arm64.

Owns: the compiler's options. The compiler is Zig's, out of the PyPI package `ziglang` of the Python that runs this,
for it brings musl for each architecture along and makes the same bytes each time.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent

PROTOCOL = 1
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}

OPTIONS = (
    *("-static", "-pie", "-fPIE", "-std=c11", "-Os", "-s", "-g0"),
    *("-fstack-protector-strong", "-D_FORTIFY_SOURCE=2", "-ffunction-sections", "-fdata-sections"),
    *("-fno-asynchronous-unwind-tables", "-fno-unwind-tables"),
    *("-Wall", "-Wextra", "-Werror"),
    *("-Wl,-z,relro,-z,now,-z,noexecstack", "-Wl,--gc-sections"),
)  # fmt: skip


def file_name(arch: str) -> str:
    """The protocol's number is part of it: an agent never runs a keeper that speaks another one."""
    return f"keeper-{PROTOCOL}-{arch}"


def build(folder: Path, arch: str) -> Path:
    """Compile for one architecture; the file appears whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / file_name(arch)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as scratch:
        made = Path(scratch, target.name)
        # Relative names, so that nothing of this machine's paths gets into the file.
        sources = sorted(path.name for path in HERE.glob("*.c"))
        compiler = (sys.executable, "-m", "ziglang", "cc", "-target", f"{MACHINES[arch]}-linux-musl")
        subprocess.run((*compiler, *OPTIONS, "-o", str(made), *sources), cwd=HERE, check=True)
        made.chmod(0o755)
        made.replace(target)
    return target


def main(arguments: Sequence[str]) -> int:
    """Build for the architectures that are named, or for all."""
    if not arguments or not set(arguments[1:]) <= MACHINES.keys():
        print(f"usage: build.py FOLDER [{'|'.join(MACHINES)}]...", file=sys.stderr)
        return 2
    if importlib.util.find_spec("ziglang") is None:
        print(f"build.py: {sys.executable} has no Zig; try: pip install ziglang==0.17.1", file=sys.stderr)
        return 1
    try:
        for arch in arguments[1:] or MACHINES:
            build(Path(arguments[0]).resolve(), arch)
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
