"""The first words with a pod's shell, as real shells take them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import mpirt.keeper
from images import build
from mpirt.rsh.protocol.entrance import BOOTSTRAP, Keepers, greeting, upload

Shell = Sequence[str]

NONCE = "0123456789abcdef"
ARCH = build.architecture()
# Says where it is and what it was asked for, and then all that is left on stdin.
KEEPER = r"""#!/bin/sh
[ "$1" = probe ] && exit PROBED
printf '\001mpirt-%s KEEPER 1 4000\n%s %s\n' "$2" "$1" "$0"; exec cat
# FOLDER
"""
HELLO = f"\x01mpirt-{NONCE} HELLO {ARCH}\n".encode()
HELLO_NONE = f"\x01mpirt-{NONCE} HELLO none\n".encode()


class Pod:
    """A folder of its own for a shell, and a keeper that no other test has."""

    def __init__(self, shell: Shell, folder: Path, *, probed: int = 0) -> None:
        self.shell = shell
        self.tmpdir = folder / "tmpdir"
        self.tmpdir.mkdir()
        self.program = KEEPER.replace("FOLDER", str(folder)).replace("PROBED", str(probed)).encode()
        self.keepers = Keepers({ARCH: self.program})
        self.name = f"mpirt-keeper-{self.keepers.digest(ARCH)}"
        self.folder = self.tmpdir / self.name

    def holds_a_keeper(self, folder: Path | None = None) -> None:
        place = folder or self.folder
        place.mkdir()
        (place / "keeper").write_bytes(self.program)
        (place / "keeper").chmod(0o700)

    def hears(self, *lines: bytes, keepers: Keepers | None = None) -> tuple[int, bytes, bytes]:
        """The shell's code, its stdout and its stderr, when it is greeted and told these lines."""
        ended = subprocess.run(
            [*self.shell, *BOOTSTRAP[1:]],
            input=greeting(NONCE, keepers or self.keepers) + b"".join(lines),
            capture_output=True,
            check=False,
            timeout=60,
            cwd="/",
            env={"PATH": os.defpath, "TMPDIR": str(self.tmpdir), "HOME": str(self.tmpdir)},
        )
        return ended.returncode, ended.stdout, ended.stderr

    def upload(self) -> bytes:
        return upload(NONCE, self.keepers, ARCH)

    def found(self, folder: Path, rest: bytes = b"", verb: str = "bridge") -> tuple[int, bytes, bytes]:
        """What a keeper in a folder says."""
        return 0, f"\x01mpirt-{NONCE} KEEPER 1 4000\n{verb} {folder}/keeper\n".encode() + rest, b""


@pytest.fixture
def pod(shell: Shell, tmp_path: Path) -> Pod:
    return Pod(shell, tmp_path)


class TestAShell:
    def test_a_shell_becomes_the_keeper_that_it_finds_and_leaves_it_all_that_follows(self, pod: Pod) -> None:
        pod.holds_a_keeper()

        assert pod.hears(b"frames\n\x00\xff") == pod.found(pod.folder, b"frames\n\x00\xff")

    def test_a_shell_without_one_names_its_processor_and_does_what_it_is_told(self, pod: Pod) -> None:
        assert pod.hears(b"echo on; exit 3\n") == (3, b"on\n", HELLO)

    def test_a_shell_looks_for_no_other_file_than_the_one_that_can_be_sent(self, pod: Pod) -> None:
        pod.holds_a_keeper()

        assert pod.hears(b"exit 3\n", keepers=Keepers({ARCH: b"another"})) == (3, b"", HELLO)
        assert pod.hears(b"exit 3\n", keepers=Keepers({"other": b"another"})) == (3, b"", HELLO)

    def test_a_shell_does_not_become_a_keeper_that_does_not_run_here(self, shell: Shell, tmp_path: Path) -> None:
        pod = Pod(shell, tmp_path, probed=1)
        pod.holds_a_keeper()

        assert pod.hears(b"exit 3\n") == (3, b"", HELLO)

    def test_a_shell_does_not_trust_a_link(self, pod: Pod, tmp_path: Path) -> None:
        pod.holds_a_keeper(tmp_path / "elsewhere")
        pod.folder.symlink_to(tmp_path / "elsewhere")

        assert pod.hears(b"exit 3\n") == (3, b"", HELLO)

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder to another user")
    def test_a_shell_does_not_trust_a_folder_of_another_owner(self, pod: Pod) -> None:
        pod.holds_a_keeper()
        os.chown(pod.folder, 12345, 12345)

        assert pod.hears(b"exit 3\n") == (3, b"", HELLO)

    def test_a_shell_asks_a_keeper_for_the_session_that_there_is_already(self, pod: Pod) -> None:
        pod.holds_a_keeper()
        line = greeting(NONCE, pod.keepers, attach=True)

        # The first greeting finds nothing, for it looks for another file.
        assert pod.hears(line, keepers=Keepers({}))[1:] == (pod.found(pod.folder, verb="attach")[1], HELLO)


CPUS = {
    "amd64": "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\n",
    "arm64": "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\n",
    "ppc64le": "processor\t: 0\ncpu\t\t: POWER9 (architected), altivec supported\nclock\t\t: 2200.0MHz\n",
    "riscv64": "processor\t: 0\nhart\t\t: 2\nisa\t\t: rv64imafdc_zicntr\nmmu\t\t: sv39\n",
    "s390x": "vendor_id       : IBM/S390\n# processors    : 4\nbogomips per cpu: 3241.00\n",
    "none": "processor\t: 0\ncpu model\t\t: Loongson-3 V0.4\n",
}


class TestTheProcessor:
    @pytest.mark.parametrize("arch", CPUS)
    def test_the_processor_is_named_as_kubernetes_does(self, shell: Shell, tmp_path: Path, arch: str) -> None:
        (tmp_path / "cpuinfo").write_text(CPUS[arch], encoding="utf-8")
        line = greeting(NONCE, Keepers({})).replace(b"/proc/cpuinfo", bytes(tmp_path / "cpuinfo"))

        done = subprocess.run(
            [*shell, *BOOTSTRAP[1:]], input=line + b"exit 3\n", capture_output=True, check=False, timeout=60
        )

        assert (done.returncode, done.stderr.decode()) == (3, f"\x01mpirt-{NONCE} HELLO {arch}\n")

    def test_the_processor_is_one_of_those_that_keepers_are_built_for(self) -> None:
        assert set(CPUS) == {*mpirt.keeper.ARCHITECTURES, "none"}


class TestAnUpload:
    def test_an_upload_becomes_a_keeper_and_is_found_the_next_time(self, pod: Pod) -> None:
        code, said, complained = pod.hears(pod.upload(), b"frames")
        assert (code, said, complained) == (*pod.found(pod.folder, b"frames")[:2], HELLO)

        assert [file.name for file in pod.folder.iterdir()] == ["keeper"]
        assert (pod.folder / "keeper").read_bytes() == pod.program
        assert [path.stat().st_mode & 0o777 for path in (pod.folder, pod.folder / "keeper")] == [0o700, 0o700]
        assert pod.hears() == pod.found(pod.folder)

    def test_an_upload_asks_for_the_session_that_there_is_already_where_that_is_meant(self, pod: Pod) -> None:
        _, said, _ = pod.hears(upload(NONCE, pod.keepers, ARCH, attach=True))

        assert said == pod.found(pod.folder, verb="attach")[1]

    def test_an_upload_that_cannot_be_executed_anywhere_says_so_and_leaves_nothing(
        self, shell: Shell, tmp_path: Path
    ) -> None:
        pod = Pod(shell, tmp_path, probed=1)

        before = b'umask 027; IFS= read -r mpirt && eval "$mpirt"\n'
        assert pod.hears(before, pod.upload(), b'umask; echo "$mpirt_elf"; exit 3\n') == (
            3,
            b"0027\n\n",
            HELLO + HELLO_NONE,
        )
        assert [list(folder.glob(pod.name)) for folder in (pod.tmpdir, Path("/tmp"), Path("/var/tmp"))] == [[]] * 3

    @pytest.mark.parametrize("place", ["link", "owner", "file"])
    def test_an_upload_goes_elsewhere_where_its_folder_is_not_its_own(
        self, pod: Pod, tmp_path: Path, place: str
    ) -> None:
        if place == "file":
            pod.folder.write_text("")
        elif place == "link":
            (tmp_path / "elsewhere").mkdir()
            pod.folder.symlink_to(tmp_path / "elsewhere")
        elif os.geteuid() != 0:
            pytest.skip("only root gives a folder to another user")
        else:
            pod.folder.mkdir()
            os.chown(pod.folder, 12345, 12345)
        try:
            assert pod.hears(pod.upload()) == (*pod.found(Path("/tmp") / pod.name)[:2], HELLO)
        finally:
            shutil.rmtree(Path("/tmp") / pod.name, ignore_errors=True)

    def test_an_upload_of_the_real_keeper_arrives_byte_for_byte(self, pod: Pod) -> None:
        program = mpirt.keeper.read(ARCH)
        if program is None:
            pytest.skip("this installation has no keeper: make programs")
        # What is behind a program makes it another file: one in /tmp is not found.
        program += str(pod.tmpdir).encode()
        keepers = Keepers({ARCH: program})

        line = upload(NONCE, keepers, ARCH, attach=True)

        code, said, complained = pod.hears(line, keepers=keepers)
        assert (code, complained) == (0, HELLO)
        assert said.startswith(f"\x01mpirt-{NONCE} GONE ".encode())
        assert (pod.tmpdir / f"mpirt-keeper-{keepers.digest(ARCH)}" / "keeper").read_bytes() == program


class TestWhatIsSent:
    def test_another_file_has_another_name(self) -> None:
        keepers = Keepers({"amd64": b"123456789", "arm64": b"123456780"})

        assert keepers.digest("amd64") == "1-9-cbf43926"
        assert keepers.digest("arm64") != keepers.digest("amd64")

    def test_a_greeting_is_one_line_and_an_upload_two(self) -> None:
        keepers = Keepers({"amd64": bytes(range(256)), "arm64": b"x"})

        assert [greeting(NONCE, keepers).count(b"\n"), greeting(NONCE, keepers)[-1:]] == [1, b"\n"]
        assert [upload(NONCE, keepers, "amd64").count(b"\n"), upload(NONCE, keepers, "amd64")[-1:]] == [2, b"\n"]
