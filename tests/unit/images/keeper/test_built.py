"""The keeper's files as they are built: small static programs, for the processors that they are named after."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from images import build
from mpirt import keeper
from mpirt.rsh.protocol import keeperframes
from mpirt.rsh.protocol.framing import Frame
from mpirt.rsh.protocol.keeperframes import Kind
from tests.unit.images.programs import assert_is_static, runner
from tests.unit.layers import PROJECT

FOLDER = PROJECT / "mpirt/keeper"
EACH = pytest.mark.parametrize("architecture", keeper.ARCHITECTURES)


def path_of(architecture: str) -> Path:
    return FOLDER / keeper.file_name(architecture)


@EACH
def test_a_file_is_a_small_static_program_for_its_processor(architecture: str) -> None:
    assert_is_static(path_of(architecture).read_bytes(), architecture)


@EACH
class TestTheProgram:
    """Of the other architectures as well, and those really: by QEMU."""

    def test_says_that_it_can_be_executed(self, architecture: str) -> None:
        done = subprocess.run([*runner(architecture), path_of(architecture), "probe"], check=False, timeout=60)

        assert done.returncode == 0

    def test_holds_a_command_from_its_start_to_its_end(self, architecture: str) -> None:
        frames = session(architecture, "echo said; exit 7")

        written = b"".join(one.payload for one in frames if one.kind == Kind.OUT)
        assert written == b"said\n"
        assert keeperframes.read_exit(frames[-1]).code == 7

    def test_has_its_numbers_in_the_order_of_the_frames(self, architecture: str) -> None:
        data = os.urandom(40_000)

        frames = session(architecture, "cat; exit 3", stdin=data)

        output = [one for one in frames if one.kind == Kind.OUT]
        assert b"".join(one.payload for one in output) == data
        assert [one.number for one in output] == [
            sum(len(one.payload) for one in output[:at]) for at in range(len(output))
        ]
        ended = keeperframes.read_exit(frames[-1])
        assert (ended.code, ended.stdout, ended.stderr) == (3, len(data), 0)
        assert max(one.number for one in frames if one.kind == Kind.TAKEN) == len(data)

    def test_counts_the_sessions_of_its_container(self, architecture: str) -> None:
        words = [*runner(architecture), str(path_of(architecture)), "sessions"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)

        # As many as other tests have here just now.
        assert re.fullmatch(r"mpirt-sessions \d+ \d+\n", done.stdout)
        assert done.returncode == 0


def session(architecture: str, command: str, *, stdin: bytes = b"") -> list[Frame]:
    """All that a keeper says of a shell command, up to its end."""
    order = keeperframes.start(
        [b"/bin/sh", b"-c", command.encode()],
        {},
        lease=0,
        grace=1,
        has_stdin=bool(stdin),
        fence=keeperframes.Fence(),
    )
    frames: list[Frame] = []
    with subprocess.Popen(
        [*runner(architecture), path_of(architecture), "bridge", "built0test"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline().startswith(f"\1mpirt-built0test KEEPER {keeper.PROTOCOL} ".encode())
        process.stdin.write(keeperframes.frame(Kind.ATTACH, 1, 0, keeperframes.lengths(0, 0)))
        for number, control in enumerate(keeperframes.start_controls(order), 1):
            process.stdin.write(keeperframes.frame(Kind.CONTROL, 1, number, control))
        for at in range(0, len(stdin), 20_000):
            process.stdin.write(keeperframes.frame(Kind.STDIN, 1, at, stdin[at : at + 20_000]))
        process.stdin.write(keeperframes.frame(Kind.STDIN_END, 1, len(stdin)))
        process.stdin.flush()
        reader = keeperframes.reader()
        while not frames or frames[-1].kind not in (Kind.EXIT, Kind.FAILED):
            data = os.read(process.stdout.fileno(), 65536)
            assert data, "the connection ended before the command's end was told"
            frames += reader.feed(data)
        process.stdin.write(keeperframes.frame(Kind.DONE, 1))
        process.stdin.close()
        assert process.wait(60) == 0
    return frames


def test_agent_and_keeper_agree_on_the_number_of_their_frames() -> None:
    assert keeperframes.PROTOCOL == keeper.PROTOCOL


def test_the_keeper_is_built_under_the_names_by_which_it_is_looked_for() -> None:
    assert {one: build.file_name("keeper", one) for one in build.ARCHITECTURES["keeper"]} == {
        one: keeper.file_name(one) for one in keeper.ARCHITECTURES
    }
