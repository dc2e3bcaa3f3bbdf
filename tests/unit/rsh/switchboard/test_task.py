"""What the environment says of a command, and which launcher a process belongs to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import mpirt.keeper
from mpirt.errors import UsageError
from mpirt.rsh.invocation.order import Order
from mpirt.rsh.pod.liveness import Pace
from mpirt.rsh.protocol.keeperframes import Fence
from mpirt.rsh.session.task import Grace, Holding, Patience, Task
from mpirt.rsh.switchboard.task import grace, holding, installed_keepers, launcher_number, pace, start_of_container


def held(**environ: str) -> Holding:
    return holding(environ, installed_keepers())


def paced(by: Holding, *, alive_seconds: float | None = None, alive_count: int | None = None) -> Pace:
    return pace(by, alive_seconds=alive_seconds, alive_count=alive_count)


class TestTheDefaults:
    def test_hold_the_command_for_three_minutes(self) -> None:
        found = held()

        assert (found.patience, paced(found)) == (Patience(lease=180, node=20), Pace(4, 14))
        assert found.fence == Fence()
        assert grace({}) == Grace()

    def test_the_keepers_are_those_of_this_installation(self) -> None:
        built = {
            arch: data for arch in mpirt.keeper.ARCHITECTURES if (data := mpirt.keeper.read(arch)) is not None
        }

        assert dict(held().keepers.files) == built


class TestSeconds:
    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("0", 0),
            ("1.5", 1.5),
            ("0" * 12, 0),
            ("10s", 10),
            ("1h30m", 5400),
            ("1d", 86400),
            ("1w", 604_800),
            ("86400", 86400),
        ],
    )
    def test_have_the_form_that_ssh_has(self, text: str, seconds: float) -> None:
        assert held(MPIRT_LEASE=text).patience == Patience(lease=seconds)
        assert held(MPIRT_NODE_PATIENCE=text).patience == Patience(node=seconds)
        assert grace({"MPIRT_GRACE": text}) == Grace(seconds)

    @pytest.mark.parametrize("name", ["MPIRT_LEASE", "MPIRT_NODE_PATIENCE", "MPIRT_GRACE"])
    def test_that_are_empty_are_the_default(self, name: str) -> None:
        assert held(**{name: ""}) == held()
        assert grace({name: ""}) == Grace()

    @pytest.mark.parametrize("name", ["MPIRT_LEASE", "MPIRT_NODE_PATIENCE", "MPIRT_GRACE"])
    @pytest.mark.parametrize(
        "text", ["604800.1", "2w", "-1", "+1", ".", "2.", "1.x", "1.2.3", "1e3", "inf", " 1", "\u0661", "none"]
    )
    def test_that_are_none_or_too_many_are_an_error(self, name: str, text: str) -> None:
        with pytest.raises(UsageError) as error:
            (held(**{name: text}), grace({name: text}))

        assert str(error.value) == f"{name}={text}: expected a time such as 30, 10s or 1h30m, at most a week"


class TestThePace:
    @pytest.mark.parametrize(("lease", "every"), [("180", 4), ("12", 4), ("6", 2), ("0.3", 0.1), ("0", 4)])
    def test_has_three_signs_of_life_in_a_lease(self, lease: str, every: float) -> None:
        found = paced(held(MPIRT_LEASE=lease))

        assert found.ask_every == pytest.approx(every)
        assert found.dead_after == paced(held()).dead_after

    @pytest.mark.parametrize(
        ("seconds", "count", "expected"),
        [
            pytest.param(5, None, Pace(5, 15), id="ssh has three"),
            pytest.param(None, 5, Pace(4, 20), id="of our own pauses"),
            pytest.param(2, 2, Pace(2, 4), id="both"),
            pytest.param(60, 2, Pace(10, 120), id="who holds the command must hear us more often"),
            pytest.param(0, None, Pace(4, 604_800), id="no seconds switch it off"),
            pytest.param(5, 0, Pace(5, 604_800), id="and so does no count"),
        ],
    )
    def test_follows_the_options_of_ssh(self, seconds: float | None, count: int | None, expected: Pace) -> None:
        found = paced(held(), alive_seconds=seconds, alive_count=count)

        assert found == expected


class TestTheFence:
    @pytest.mark.parametrize(
        ("text", "fence"),
        [
            ("", Fence()),
            (":5", Fence()),
            ("job:0", Fence("job", 0)),
            ("job:18446744073709551615", Fence("job", 2**64 - 1)),
        ],
    )
    def test_is_a_job_and_its_attempt(self, text: str, fence: Fence) -> None:
        assert held(MPIRT_FENCE=text).fence == fence

    def test_without_an_attempt_has_the_launcher(self) -> None:
        assert held(MPIRT_FENCE="job").fence == Fence("job", launcher=launcher_number())

    @pytest.mark.parametrize(
        "text",
        ["job:", "job:x", "job:-1", "job:18446744073709551616", "job:1:2", "job:\u0661", "job:" + "9" * 5000],
    )
    def test_with_an_attempt_that_is_no_number_is_an_error(self, text: str) -> None:
        with pytest.raises(UsageError) as error:
            held(MPIRT_FENCE=text)

        assert str(error.value) == f"MPIRT_FENCE={text[:60]}: expected JOB or JOB:ATTEMPT, the attempt a number"

    def test_may_have_a_job_of_511_bytes(self) -> None:
        assert held(MPIRT_FENCE="j" * 511 + ":1").fence == Fence("j" * 511, 1)

    @pytest.mark.parametrize("text", ["\u00e9" * 256, "\u00e9" * 256 + ":1"])
    def test_with_a_job_that_no_keeper_takes_is_an_error(self, text: str) -> None:
        with pytest.raises(UsageError) as error:
            held(MPIRT_FENCE=text)

        said = "\u00e9" * 60
        assert str(error.value) == f"MPIRT_FENCE={said}...: the job's name has 512 bytes, 511 is the most"

    def test_may_have_a_job_of_any_bytes(self) -> None:
        start = Task("w", Order("n1", b"true"), held(MPIRT_FENCE="job\udcff:1")).start()

        assert b"job\xff\0/bin/sh\0" in start


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
