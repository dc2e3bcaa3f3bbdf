"""What tells a launcher from every other one: a start of its container."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from mpirt.rsh.switchboard.task import launcher_number, start_of_container

UID = "b6d1b7f4-9b56-4e2c-8f7c-0d1c7e7f5d11"
OTHERS = b"""\
620 524 0:66 / / rw,relatime master:251 - overlay overlay rw,lowerdir=/a,upperdir=/pods/b/containers/c/d
621 620 0:71 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
622 620 0:72 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
640 620 8:1 /var/lib/kubelet/pods/UID/etc-hosts /etc/hosts rw,relatime - ext4 /dev/sda1 rw
641 620 8:1 /var/lib/kubelet/pods/UID/volumes/kubernetes.io~empty-dir/v /pods/u/containers/c/s rw - xfs /dev/sda rw
642 620 8:1 /var/lib/kubelet/pods/UID/volume-subpaths/data/main/0 /data rw - ext4 /dev/sda1 rw
"""


def line(root: str, at: str = "/dev/termination-log") -> bytes:
    return f"643 622 8:1 {root} {at} rw,relatime - ext4 /dev/sda1 rw\n".encode()


class TestTheStartOfAContainer:
    @pytest.mark.parametrize(
        ("mounts", "found"),
        [
            pytest.param(b"", b"", id="no mounts"),
            pytest.param(b"640\n640 620 8:1\n", b"", id="lines that are none"),
            pytest.param(OTHERS, b"", id="mounts of other kinds"),
            pytest.param(
                OTHERS + line(f"/var/lib/kubelet/pods/{UID}/containers/main/0a1b2c3d"),
                f"{UID}/main/0a1b2c3d".encode(),
                id="the kubelet's folder on the node's own disk",
            ),
            pytest.param(
                OTHERS + line(f"/pods/{UID}/containers/main/0a1b2c3d", "/tmp/last words"),
                f"{UID}/main/0a1b2c3d".encode(),
                id="the kubelet's folder on a disk of its own, and another path in the pod",
            ),
            pytest.param(
                line(f"/data/pods/x/pods/{UID}/containers/main/0a1b2c3d//deleted"),
                f"{UID}/main/0a1b2c3d".encode(),
                id="a file that the node has removed meanwhile",
            ),
            pytest.param(
                line("/pods/u/containers/main/0b") + OTHERS + line("/pods/u/containers/main/0a"),
                b"u/main/0a u/main/0b",
                id="two of them, in the order of their names",
            ),
        ],
    )
    def test_is_known_by_the_file_for_its_termination_message(self, mounts: bytes, found: bytes) -> None:
        assert start_of_container(mounts) == found


SHARING = ("unshare", "--mount")
"""A container that shares its pod's process namespace: its first process is not process 1."""
ALONE = ("unshare", "--mount", "--pid", "--fork", "--mount-proc")
MOUNTED = 'mount --bind "$0" "$0" && "$@"; exit'
"""The kubelet's file, wherever it is mounted."""
UNMOUNTED = ("unshare", "--mount", "/bin/sh", "-c", 'umount "$0" && exec "$@"')
PRINT = (sys.executable, "-c", "from mpirt.rsh.switchboard.task import launcher_number; print(launcher_number())")


def printed(*words: str | Path) -> int:
    return int(subprocess.run(words, check=True, capture_output=True).stdout)


def number_in(container: Sequence[str], file: Path) -> int:
    return printed(*container, "/bin/sh", "-c", MOUNTED, file, *PRINT)


@pytest.fixture
def starts(tmp_path: Path) -> list[Path]:
    """The files of two starts of one container."""
    folder = tmp_path / "pods" / UID / "containers" / "main"
    folder.mkdir(parents=True)
    files = [folder / start for start in ("0a1b2c3d", "0a1b2c3e")]
    for file in files:
        file.touch()
    return files


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it mounts something")
class TestTheNumber:
    @pytest.mark.parametrize("container", [SHARING, ALONE], ids=["a shared process namespace", "its own"])
    def test_is_another_for_each_start_of_a_container(self, starts: list[Path], container: Sequence[str]) -> None:
        numbers = [number_in(container, file) for file in (*starts, *starts)]

        assert numbers[:2] == numbers[2:]
        assert len({0, launcher_number(), *numbers}) == 4

    def test_is_the_same_for_a_process_without_the_mounts_of_its_container(self, starts: list[Path]) -> None:
        file = starts[0]

        assert printed(*ALONE, "/bin/sh", "-c", MOUNTED, file, *UNMOUNTED, file, *PRINT) == number_in(ALONE, file)


def test_without_a_kubelet_the_number_is_one_for_all_processes_here() -> None:
    assert 0 < launcher_number() == printed(*PRINT) < 2**64
