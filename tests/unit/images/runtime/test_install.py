"""What is in a folder after the runtime was installed into it, whatever was there before."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from images.runtime.install import NotInstalled, install, main, reason
from testbed.kube.wait import until
from tests.unit.layers import PROJECT

_INSTALL = """
import sys
from pathlib import Path
from images.runtime.install import install
install(Path(sys.argv[1]), Path(sys.argv[2]))
"""

_MAIN = """
import sys
from images.runtime.install import main
sys.prefix = sys.argv[1]
sys.exit(main(sys.argv[2:]))
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A runtime folder of two files."""
    folder = tmp_path / "source"
    (folder / "bin").mkdir(parents=True)
    (folder / "lib/deep").mkdir(parents=True)
    (folder / "bin/mpirt-rsh").write_bytes(b"program")
    (folder / "lib/deep/os.pyc").write_bytes(b"module")
    for path in (folder, folder / "bin", folder / "lib", folder / "lib/deep", folder / "bin/mpirt-rsh"):
        path.chmod(0o755)
    (folder / "lib/deep/os.pyc").chmod(0o644)
    return folder


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "target"


def copies(target: Path) -> list[Path]:
    return sorted(target.glob(".runtime-*"))


class TestIntoAnEmptyFolder:
    def test_the_programs_are_there(self, source: Path, target: Path) -> None:
        assert install(source, target)

        assert (target / "bin/mpirt-rsh").read_bytes() == b"program"
        assert (target / "bin/../lib/deep/os.pyc").read_bytes() == b"module"

    def test_the_folder_may_be_mounted_elsewhere_later(self, source: Path, target: Path, tmp_path: Path) -> None:
        install(source, target)

        target.rename(tmp_path / "elsewhere")
        assert (tmp_path / "elsewhere/bin/mpirt-rsh").read_bytes() == b"program"

    def test_every_user_may_run_it_whatever_the_umask(self, source: Path, target: Path) -> None:
        before = os.umask(0o077)
        try:
            target.mkdir(mode=0o755)
            install(source, target)
        finally:
            os.umask(before)

        [copy] = copies(target)
        modes = {str(path.relative_to(copy)): stat.S_IMODE(path.stat().st_mode) for path in copy.rglob("*")}
        assert stat.S_IMODE(copy.stat().st_mode) == 0o755
        assert modes == {
            "bin": 0o755, "bin/mpirt-rsh": 0o755, "lib": 0o755, "lib/deep": 0o755, "lib/deep/os.pyc": 0o644,
        }  # fmt: skip

    def test_nothing_else_is(self, source: Path, target: Path) -> None:
        install(source, target)

        [copy] = copies(target)
        assert sorted(path.name for path in target.iterdir()) == [copy.name, "bin"]
        assert sorted(path.name for path in copy.iterdir()) == ["bin", "lib"]


class TestASecondTime:
    def test_nothing_is_done(self, source: Path, target: Path) -> None:
        install(source, target)
        [before] = copies(target)

        assert not install(source, target)
        assert copies(target) == [before]

    @pytest.mark.parametrize(
        "harm",
        [
            pytest.param(lambda bin_: (bin_ / "mpirt-rsh").write_bytes(b"PROGRAM"), id="a file's content"),
            pytest.param(lambda bin_: (bin_ / "mpirt-rsh").write_bytes(b""), id="a file's size"),
            pytest.param(lambda bin_: (bin_ / "mpirt-rsh").unlink(), id="a file that is gone"),
            pytest.param(lambda bin_: (bin_ / "mpirt-rsh").chmod(0o600), id="a mode"),
            pytest.param(lambda bin_: (bin_ / "more").write_bytes(b""), id="a file too many"),
            pytest.param(lambda bin_: bin_.rename(bin_.with_name("away")), id="a folder that is gone"),
        ],
    )
    def test_a_damaged_folder_is_replaced(
        self, source: Path, target: Path, harm: Callable[[Path], object]
    ) -> None:
        install(source, target)
        harm((target / "bin").resolve())

        assert install(source, target)
        assert (target / "bin/mpirt-rsh").read_bytes() == b"program"
        assert not install(source, target)
        assert len(copies(target)) == 1

    def test_a_newer_version_takes_the_place_of_the_former(self, source: Path, target: Path) -> None:
        install(source, target)
        (source / "bin/mpirt-rsh").write_bytes(b"better")

        assert install(source, target)
        assert (target / "bin/mpirt-rsh").read_bytes() == b"better"
        assert len(copies(target)) == 1


class TestAfterARunThatWasKilled:
    def test_the_folder_of_a_killed_run_is_removed(self, source: Path, target: Path) -> None:
        (target / ".runtime-half/bin").mkdir(parents=True)

        install(source, target)

        assert not (target / ".runtime-half").exists()

    def test_the_folder_that_another_run_still_writes_is_not_removed(self, source: Path, target: Path) -> None:
        (target / ".runtime-busy").mkdir(parents=True)
        held = os.open(target / ".runtime-busy", os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            install(source, target)
        finally:
            os.close(held)

        assert (target / ".runtime-busy").exists()
        assert (target / "bin/mpirt-rsh").exists()

    def test_a_run_that_was_killed_on_its_way_is_made_up_for(self, source: Path, target: Path) -> None:
        # A terminal at which nobody types stops the copy there.
        master, terminal = os.openpty()
        (source / "lib/terminal").symlink_to(os.ttyname(terminal))
        words = [sys.executable, "-c", _INSTALL, str(source), str(target)]
        with subprocess.Popen(words, cwd=PROJECT) as process:
            until(lambda: list(target.glob(".runtime-*/lib/terminal")), within=60, what="the copy to be under way")
            process.kill()
        os.close(master)
        os.close(terminal)
        (source / "lib/terminal").unlink()

        assert not (target / "bin").exists()
        assert install(source, target)
        assert (target / "bin/mpirt-rsh").read_bytes() == b"program"
        assert len(copies(target)) == 1

    def test_a_copy_that_fails_leaves_nothing(self, source: Path, target: Path) -> None:
        (source / "lib/deep/broken").symlink_to("nowhere")

        with pytest.raises(OSError, match="No such file"):
            install(source, target)
        assert list(target.iterdir()) == []


class TestAFolderOfSomeoneElse:
    @pytest.fixture(params=["a folder", "a file", "a link"])
    def foreign(self, request: pytest.FixtureRequest, target: Path) -> Path:
        target.mkdir()
        place = target / "bin"
        match request.param:
            case "a folder":
                place.mkdir()
            case "a file":
                place.write_bytes(b"")
            case _:
                place.symlink_to("/usr/bin")
        return place

    def test_a_complete_folder_is_left_unchanged(self, source: Path, target: Path, foreign: Path) -> None:
        with pytest.raises(NotInstalled, match="give it a folder of its own"):
            install(source, target)

        assert list(target.iterdir()) == [foreign]


class TestTheProgram:
    @pytest.mark.parametrize("words", [[], ["a", "b"], [""], ["--force"]], ids=repr)
    def test_the_program_wants_one_folder(self, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert main(words) == 240

        told = capsys.readouterr()
        assert (told.out, told.err.count("\n")) == ("", 1)

    def test_the_program_explains_itself(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["--help"]) == 0

        assert capsys.readouterr().out.startswith("Usage: mpirt-runtime-install DIR [-- PROGRAM [ARG]...]\n")

    def test_the_program_says_what_it_did(
        self, source: Path, target: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "prefix", str(source))

        assert (main([str(target)]), main([str(target)])) == (0, 0)

        first, second = capsys.readouterr().out.splitlines()
        assert first.startswith(f"mpirt-runtime-install: installed: {target}/bin, 0.0 MB, ")
        assert second.startswith(f"mpirt-runtime-install: was there already, unchanged: {target}/bin, 0.0 MB, ")

    def test_the_program_that_follows_is_run_in_its_place(self, source: Path, target: Path) -> None:
        program = [sys.executable, "-c", "import os, sys; print(os.getpid(), sys.argv[1:])", "--wait", "2"]
        words = [sys.executable, "-c", _MAIN, str(source), str(target), "--", *program]

        with subprocess.Popen(words, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as started:
            said, _ = started.communicate(timeout=60)

        assert (target / "bin").is_symlink()
        assert (started.returncode, said) == (0, f"{started.pid} ['--wait', '2']\n")

    def test_no_program_follows_a_copy_that_failed(
        self, source: Path, target: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "prefix", str(source))
        target.write_bytes(b"")

        assert main([str(target), "--", sys.executable, "-c", "raise SystemExit(3)"]) == 241
        assert "can't install into" in capsys.readouterr().err

    def test_a_program_that_is_not_there_is_named(
        self, source: Path, target: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "prefix", str(source))

        assert main([str(target), "--", f"{target}/bin/none"]) == 241
        assert capsys.readouterr().err == (
            f"mpirt-runtime-install: can't run {target}/bin/none: No such file or directory\n"
        )

    def test_the_program_says_in_one_line_what_it_could_not_do(
        self, source: Path, target: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "prefix", str(source))
        target.write_bytes(b"")

        assert main([str(target)]) == 241

        assert capsys.readouterr().err == (
            f"mpirt-runtime-install: can't install into {target}: File exists; "
            f"give it a folder that user {os.getuid()} can write to\n"
        )

    def test_on_a_full_disk_it_says_how_much_it_needs(self, source: Path) -> None:
        (source / "lib/large").write_bytes(bytes(2_000_000))

        assert reason(OSError(errno.ENOSPC, "No space left"), source) == "No space left; 2 MB are needed"
