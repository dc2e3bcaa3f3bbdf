"""Building: the same sources make the same bytes, and what can't be built is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]
BUILD = PROJECT / "images/build.py"


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
