"""
Puts the runtime folder together: first Python and what it needs, out of Debian's packages, then mpirt.

    assemble.py python FOLDER           minutes with its packages; changes with Debian
    assemble.py mpirt FOLDER PROJECT    a second; changes with every commit

Owns: what is in the folder and where. Runs in a root file system in which the packages are installed, or, for the
second step, with the Python of the folder itself: the same script serves the Dockerfile and the test cluster's
builder, which differ in how they come by the packages. Standard library only.
"""

from __future__ import annotations

import os
import py_compile
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
_STDLIB = Path("/usr/lib") / _VERSION
_PACKAGES = Path("/usr/lib/python3/dist-packages")

# Tests, tools, windows, and what needs libraries of its own: nothing that a program of ours could come to import.
_LEFT_OUT = frozenset({
    "antigravity", "cgitb", "config-*", "curses", "dbm", "dist-packages", "distutils", "doctest", "ensurepip",
    "idlelib", "lib2to3", "msilib", "pdb", "pydoc", "pydoc_data", "sitecustomize", "sqlite3", "test", "this",
    "tkinter", "turtle", "turtledemo", "unittest", "venv", "wsgiref", "xmlrpc",
})  # fmt: skip
_EXTENSIONS_LEFT_OUT = re.compile(
    r"_(bz2|crypt|ctypes_test|curses|curses_panel|dbm|gdbm|lsprof|lzma|sqlite3|tkinter|uuid|xxtestfuzz|"
    r"xxsubinterpreters|codecs_\w+|multibytecodec|test\w*)|audioop|nis|ossaudiodev|readline|xxlimited\w*"
)
# Python's own, for text; PyYAML reads UTF-16; an archive's names are in cp437.
_ENCODINGS = re.compile(
    r"__init__|aliases|ascii|cp437|idna|latin_1|punycode|raw_unicode_escape|unicode_escape|utf_\w+"
)

# What images call the machines that uname calls otherwise.
_ARCHITECTURES = {"aarch64": "arm64", "x86_64": "amd64"}

# The packages of which something is in the folder.
_DISTRIBUTED = (
    "libc6", "libexpat1", "libffi8", "libgcc-s1", "libpython3.11-stdlib", "libssl3", "libyaml-0-2",
    "python3-click", "python3-psutil", "python3-yaml", "python3.11-minimal", "zlib1g",
)  # fmt: skip

# Programs that are of no use without packages which the folder doesn't have.
_NOT_FOR_LAUNCHERS = frozenset({"mpirt-controller"})
# What its file in C starts if no switchboard has the hosts. Pip's script only becomes that file.
_DISCOVER = "mpirt.discover.main:main"
# mpirt-rsh, and the names under which launchers start it: the agent's file by itself, too.
_AGENTS = ("mpirt-rsh", "ssh", "kubexec.sh")
# What only agents start.
_SWITCHBOARD = ("mpirt-switchboard", "mpirt.cli.switchboard:main")
# The agent's file by itself, without Python.
_INIT = "mpirt-init"
_INSTALLER = "mpirt-runtime-install"

# A search for garbage costs a tenth of the imports, of which none ever is.
_PROGRAM = """\
import gc
gc.disable()
import mpirt_start
mpirt_start.prepare()
from {module} import {function}
gc.freeze()
gc.enable()
import sys
sys.exit({function}())
"""


def add_python(folder: Path) -> None:
    """Python, its libraries and its loader, and the packages that mpirt uses."""
    lib = folder / "lib"
    lib.mkdir(parents=True)
    _copy(Path(f"/usr/bin/{_VERSION}"), lib / "python")
    compile_tree(_STDLIB, lib / _VERSION, leave_out=is_left_out)
    _add_extensions(_STDLIB / "lib-dynload", lib / _VERSION / "lib-dynload")
    for package in ("click", "psutil", "yaml"):
        compile_tree(_PACKAGES / package, lib / "site-packages" / package, leave_out=is_left_out)
        for extension in sorted((_PACKAGES / package).glob("*.so")):
            _copy(extension, lib / "site-packages" / package / extension.name)
    _add_libraries([lib / "python", *sorted(lib.rglob("*.so"))], lib)
    _add_licences(folder)


def add_mpirt(folder: Path, project: Path) -> None:
    """mpirt and its programs. What was there of it before is replaced."""
    lib = folder / "lib"
    if not (lib / _VERSION).is_dir():
        raise SystemExit(f"{lib} has no {_VERSION}: run this with the Python that the folder was made of")
    site, programs, own = lib / "site-packages", lib / "programs", project / "images/runtime"
    about = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for former in (site / "mpirt", programs, folder / "bin"):
        shutil.rmtree(former, ignore_errors=True)
    compile_tree(project / "mpirt", site / "mpirt")
    _add_keepers(project / "mpirt/keeper", site / "mpirt/keeper")
    _add_agent(project / "mpirt/agent", lib / "agent")
    _compile(own / "start.py", lib / _VERSION / "mpirt_start.pyc", shown="mpirt_start.py")
    _compile(own / "install.py", site / "mpirt_install.pyc", shown="mpirt_install.py")
    _write_metadata(site, about["name"], about["version"])
    programs.mkdir()
    (folder / "bin").mkdir()
    in_python = programs_of(about["scripts"])
    for name, entry in sorted([*in_python.items(), _SWITCHBOARD]):
        _write_program(programs / f"{name}.pyc", entry)
    # Links take no place in the image, and are files of their own once they are copied: 50 kB each.
    for name in (*in_python, *_AGENTS, _INIT):
        (folder / "bin" / name).hardlink_to(lib / "agent")
    _make_readable(folder)


def programs_of(scripts: Mapping[str, str]) -> Mapping[str, str]:
    """Names in bin/ of programs in Python, and the function of each: those that pip would install, and ours."""
    own = {name: entry for name, entry in scripts.items() if name not in (*_NOT_FOR_LAUNCHERS, *_AGENTS)}
    return {**own, "mpirt-discover": _DISCOVER, _INSTALLER: "mpirt_install:main"}


def compile_tree(source: Path, target: Path, *, leave_out: Callable[[Path], bool] | None = None) -> None:
    """Every module under `source`, compiled and without its text; other files stay behind."""
    for module in sorted(source.rglob("*.py")):
        name = module.relative_to(source)
        if leave_out is None or not leave_out(name):
            _compile(module, (target / name).with_suffix(".pyc"), shown=str(target.name / name))


def _compile(module: Path, target: Path, *, shown: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # Without its source a module is not compared by time; without times the same source gives the same file.
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(module), str(target), dfile=shown, doraise=True, invalidation_mode=mode)


def is_left_out(name: Path) -> bool:
    """Whether a module of the standard library is of no use to any program of ours."""
    top = name.parts[0].removesuffix(".py")
    if top == "encodings":
        return not _ENCODINGS.fullmatch(name.stem)
    return top in _LEFT_OUT or top.startswith("config-") or {"test", "tests"} & set(name.parts) != set()


def _add_extensions(source: Path, target: Path) -> None:
    target.mkdir()
    for file in sorted(source.glob("*.so")):
        if not _EXTENSIONS_LEFT_OUT.fullmatch(file.name.partition(".")[0]):
            _copy(file, target / file.name)


def _add_libraries(programs: Iterable[Path], lib: Path) -> None:
    """The loader, and each library that one of these is linked with."""
    for path in sorted({path for program in programs for path in libraries_in(run("ldd", program))}):
        _copy(path, lib / ("ld.so" if path.name.startswith("ld-linux") else path.name))
    # glibc opens this one by itself, the first time that a thread ends early.
    [gcc] = Path("/lib").glob("*-linux-gnu/libgcc_s.so.1")
    _copy(gcc, lib / gcc.name)


def libraries_in(listing: str) -> Iterator[Path]:
    """The paths in what ldd prints: `NAME => PATH (ADDRESS)` and, for the loader, `PATH (ADDRESS)`."""
    for line in listing.splitlines():
        if "not found" in line:
            raise SystemExit(f"a library is missing: {line.strip()}")
        found = re.search(r"(/\S+) \(0x", line)
        if found:
            yield Path(found[1])


def _add_licences(folder: Path) -> None:
    """The licences of the programs: beside the folder, and not in a launcher's volume."""
    for package in _DISTRIBUTED:
        text = Path("/usr/share/doc", package, "copyright")
        # Root file systems that are made for tests are made without it.
        if text.exists():
            target = folder / "share/doc" / package / text.name
            target.parent.mkdir(parents=True)
            shutil.copyfile(text, target)


def _add_keepers(source: Path, target: Path) -> None:
    """The programs that mpirt-rsh takes to workers, for every architecture: theirs may be another one."""
    files = sorted(source.glob("keeper-*"))
    if not files:
        raise SystemExit(f"{source} has no keeper; build it: make programs")
    for file in files:
        shutil.copyfile(file, target / file.name)


def _add_agent(source: Path, target: Path) -> None:
    """The program that all names in bin/ are: for this machine's architecture, as the Python beside it."""
    machine = os.uname().machine
    for file in source.glob(f"agent-*-{_ARCHITECTURES.get(machine, machine)}"):
        target.unlink(missing_ok=True)
        shutil.copyfile(file, target)
        target.chmod(0o755)
        return
    raise SystemExit(f"{source} has no agent for {machine}; build it: make programs")


def _write_program(target: Path, entry: str) -> None:
    module, _, function = entry.partition(":")
    text = target.with_suffix(".py")
    text.write_text(_PROGRAM.format(module=module, function=function), encoding="utf-8")
    _compile(text, target, shown=text.name)
    text.unlink()


def _write_metadata(site: Path, name: str, version: str) -> None:
    """As much of it as a program needs to tell its version."""
    for former in site.glob(f"{name}-*.dist-info"):
        shutil.rmtree(former)
    info = site / f"{name}-{version}.dist-info"
    info.mkdir()
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (info / "METADATA").write_text(text, encoding="utf-8")


def _copy(source: Path, target: Path) -> None:
    """A file and not the link to it, without the times of the package."""
    shutil.copyfile(source.resolve(), target)
    target.chmod(0o755)


def _make_readable(folder: Path) -> None:
    """For every user, whatever the umask of who assembles."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() or (os.access(path, os.X_OK) and path.stat().st_mode & 0o100) else 0o644)


def run(*argv: str | Path) -> str:
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout


def main(words: Sequence[str]) -> None:
    match list(words):
        case ["python", folder]:
            add_python(Path(folder))
        case ["mpirt", folder, project]:
            add_mpirt(Path(folder), Path(project))
        case _:
            raise SystemExit("usage: assemble.py python FOLDER | mpirt FOLDER PROJECT")


if __name__ == "__main__":
    main(sys.argv[1:])
