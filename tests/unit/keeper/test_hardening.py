"""What the file is, and that it comes out of the same sources as the same bytes."""

from __future__ import annotations

import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]
BUILD = PROJECT / "images/build.py"

LOAD, DYNAMIC, INTERPRETER, RELRO, STACK = 1, 2, 3, 0x6474E552, 0x6474E551
EXECUTE, WRITE = 1, 2


@dataclass(frozen=True, slots=True)
class Segment:
    """A program header."""

    kind: int
    flags: int


def segments(program: Path) -> list[Segment]:
    """All program headers of a 64-bit ELF file."""
    data = program.read_bytes()
    (first,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    return [Segment(*struct.unpack_from("<II", data, first + number * size)) for number in range(count)]


def test_the_file_is_small_enough_to_go_into_a_config_map_twice(keeper: Path) -> None:
    assert keeper.stat().st_size <= 65536


def test_it_needs_no_interpreter(keeper: Path) -> None:
    kinds = {segment.kind for segment in segments(keeper)}

    assert LOAD in kinds
    assert INTERPRETER not in kinds


def test_nothing_is_both_writable_and_executable(keeper: Path) -> None:
    flags = [segment.flags for segment in segments(keeper) if segment.kind in {LOAD, STACK}]

    assert any(flag & EXECUTE for flag in flags)
    assert [flag for flag in flags if flag & WRITE and flag & EXECUTE] == []


def test_the_stack_is_not_executable_and_relocations_are_read_only(keeper: Path) -> None:
    (stack,) = (segment for segment in segments(keeper) if segment.kind == STACK)

    assert not stack.flags & EXECUTE
    assert any(segment.kind == RELRO for segment in segments(keeper))


def test_it_is_loaded_at_an_address_of_its_own_each_time(keeper: Path) -> None:
    assert struct.unpack_from("<H", keeper.read_bytes(), 16) == (3,)


def test_the_same_sources_make_the_same_bytes(keeper: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, BUILD, "keeper", tmp_path, "amd64"], check=True, cwd="/")

    assert (tmp_path / keeper.name).read_bytes() == keeper.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == [keeper.name]


@pytest.mark.parametrize(
    "words",
    [[], ["other", "folder"], ["keeper", "folder", "riscv"]],
    ids=["nothing", "an unknown program", "an unknown architecture"],
)
def test_build_refuses_what_it_cannot_make(words: list[str]) -> None:
    result = subprocess.run([sys.executable, BUILD, *words], capture_output=True, text=True, check=False)

    assert result.returncode == 2
    assert result.stderr.startswith("usage: build.py agent|keeper FOLDER ")


def test_build_says_what_to_do_where_zig_is_missing(tmp_path: Path) -> None:
    result = subprocess.run(
        ["/usr/bin/python3", "-I", "-S", BUILD, "keeper", tmp_path], capture_output=True, text=True, check=False
    )

    assert (result.returncode, result.stdout) == (1, "")
    assert "pip install ziglang==" in result.stderr
