"""What goes into the runtime folder, and what stays out."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from images import build
from images.runtime.assemble import add_mpirt, compile_tree, is_left_out, libraries_in, programs_of
from mpirt import agent
from tests.unit.layers import PROJECT

SCRIPTS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]


class TestPrograms:
    def test_the_programs_in_python_are_those_of_people_and_discovery(self) -> None:
        assert sorted(programs_of(SCRIPTS)) == ["mpirt", "mpirt-discover", "mpirt-runtime-install"]


LEFT_OUT = (
    "idlelib/run.py", "config-3.11-x86_64-linux-gnu/x.py", "ctypes/test/a.py", "turtle.py",
    "encodings/cp1252.py",
)  # fmt: skip
NEEDED = (
    "ssl.py", "encodings/__init__.py", "encodings/utf_8_sig.py", "encodings/idna.py", "email/parser.py",
    "testing.py",
)  # fmt: skip


@pytest.mark.parametrize("module", [*LEFT_OUT, *NEEDED])
def test_modules_of_the_standard_library_that_no_program_needs_are_left_out(module: str) -> None:
    assert is_left_out(Path(module)) == (module in LEFT_OUT)


class TestLibraries:
    def test_the_libraries_are_those_that_ldd_found(self) -> None:
        listing = (
            "\tlinux-vdso.so.1 (0x00007ffd2f3f2000)\n"
            "\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f1c0a2b7000)\n"
            "\t/lib64/ld-linux-x86-64.so.2 (0x00007f1c0ab1f000)\n"
        )

        found = [str(path) for path in libraries_in(listing)]

        assert found == ["/lib/x86_64-linux-gnu/libz.so.1", "/lib64/ld-linux-x86-64.so.2"]

    def test_a_missing_library_is_an_error(self) -> None:
        with pytest.raises(SystemExit, match=r"a library is missing: libx\.so\.1 => not found"):
            list(libraries_in("\tlibx.so.1 => not found\n"))

    def test_a_program_that_needs_none_has_none(self) -> None:
        assert list(libraries_in("\tstatically linked\n")) == []


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What both steps leave, as far as the second one looks at what the first has left."""
    folder = tmp_path_factory.mktemp("made")
    (folder / f"lib/python3.{sys.version_info.minor}").mkdir(parents=True)
    add_mpirt(folder, PROJECT)
    return folder


class TestMpirt:
    @pytest.fixture
    def folder(self, made: Path, tmp_path: Path) -> Path:
        """A copy of it, for a test that may change it."""
        return Path(shutil.copytree(made, tmp_path / "folder", symlinks=True))

    def test_mpirt_runs_without_its_source(self, folder: Path) -> None:
        site = folder / "lib/site-packages"
        code = "import sys; sys.path.insert(0, sys.argv[1]); from mpirt import names; print(names.RSH)"

        told = subprocess.run(
            [sys.executable, "-IS", "-c", code, site], capture_output=True, check=True, text=True
        )

        assert told.stdout == "mpirt-rsh\n"
        assert list(site.rglob("*.py")) == []

    def test_every_program_is_started_by_the_agent(self, folder: Path) -> None:
        programs = {path.name: path.read_bytes() for path in (folder / "bin").iterdir()}
        architecture = build.architecture()

        agents = ["mpirt-rsh", "ssh", "kubexec.sh", "mpirt-init"]
        assert sorted(programs) == sorted([*programs_of(SCRIPTS), *agents])
        assert set(programs.values()) == {(PROJECT / "mpirt/agent" / agent.file_name(architecture)).read_bytes()}

    def test_agents_start_the_switchboard_and_nobody_else_does(self, folder: Path) -> None:
        programs = {path.stem for path in (folder / "lib/programs").iterdir()}

        assert programs - set(programs_of(SCRIPTS)) == {"mpirt-switchboard"}

    def test_the_folder_has_the_keeper_for_every_architecture(self, folder: Path) -> None:
        files = {path.name: path for path in (folder / "lib/site-packages/mpirt/keeper").glob("keeper-*")}

        assert sorted(files) == [f"keeper-1-{one}" for one in ("amd64", "arm64", "ppc64le", "riscv64", "s390x")]
        for name, path in files.items():
            assert path.read_bytes() == (PROJECT / "mpirt/keeper" / name).read_bytes()

    def test_its_programs_find_the_keeper_there(self, folder: Path) -> None:
        code = (
            "import sys; sys.path.insert(0, sys.argv[1]); from mpirt.keeper import read; print(len(read('arm64')))"
        )

        told = subprocess.run(
            [sys.executable, "-IS", "-c", code, folder / "lib/site-packages"],
            capture_output=True, check=True, text=True,
        )  # fmt: skip

        assert told.stdout == f"{(PROJECT / 'mpirt/keeper/keeper-1-arm64').stat().st_size}\n"

    @pytest.mark.parametrize("program", ["agent", "keeper"])
    def test_a_folder_without_a_program_is_not_made(self, folder: Path, tmp_path: Path, program: str) -> None:
        project = tmp_path / "project"
        for name in ("pyproject.toml", "images/runtime", "mpirt"):
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (PROJECT / name).is_dir() else shutil.copy
            copy(PROJECT / name, project / name)
        for path in (project / "mpirt" / program).glob(f"{program}-*"):
            path.unlink()

        with pytest.raises(SystemExit, match=f"has no {program}.*; build it: make programs"):
            add_mpirt(folder, project)

    def test_every_user_may_run_it(self, folder: Path) -> None:
        assert {path.stat().st_mode & 0o777 for path in (folder / "bin").iterdir()} == {0o755}
        assert {path.stat().st_mode & 0o777 for path in folder.rglob("*.pyc")} == {0o644}

    def test_a_second_time_replaces_the_first(self, folder: Path) -> None:
        stale = folder / "lib/site-packages/mpirt/gone.pyc"
        stale.write_bytes(b"")

        add_mpirt(folder, PROJECT)

        assert not stale.exists()

    def test_another_python_than_the_folders_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(SystemExit, match="run this with the Python that the folder was made of"):
            add_mpirt(tmp_path, PROJECT)


def test_the_same_source_is_compiled_to_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        source = tmp_path / name / "package"
        source.mkdir(parents=True)
        (source / "module.py").write_text("X = 1\n")
        compile_tree(source, tmp_path / name / "compiled/package")

    one, two = ((tmp_path / name / "compiled/package/module.pyc").read_bytes() for name in ("one", "two"))
    assert one == two
