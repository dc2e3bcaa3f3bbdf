"""What is told of the runtime image, and how its folder comes out of its archive."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

from benchmarks import report, runtime


def archive(path: Path) -> Path:
    """A docker-archive with one file in its one layer."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        member = tarfile.TarInfo("usr/lib/mpirt/bin/mpirt-rsh")
        member.size = 5
        tar.addfile(member, io.BytesIO(b"\x7fELF\n"))
    with tarfile.open(path, "w") as tar:
        member = tarfile.TarInfo("layer.tar")
        member.size = len(content.getvalue())
        tar.addfile(member, io.BytesIO(content.getvalue()))
    return path


def test_the_folder_is_where_the_image_has_it(tmp_path: Path) -> None:
    folder = runtime.unpacked(archive(tmp_path / "image.tar"), tmp_path / "out")

    assert (folder / "bin/mpirt-rsh").read_bytes() == b"\x7fELF\n"


def test_figures_are_the_size_and_the_median_of_the_times() -> None:
    copied = runtime.Copied(27.5, [0.1, 0.3, 0.2])

    assert json.loads(report.json_line(copied.figures())) == {"size_mb": 27.5, "install_s": 0.2}
    assert copied.rendered() == (
        "size of the copy: 27.5 MB, bound 60 MB\n"
        "time to copy, the program's start included: 0.20 s (0.10-0.30), bound 1.5 s"
    )


def test_ratios_have_their_keys_and_bounds() -> None:
    assert (runtime.START.key, runtime.START.bound) == ("start_ratio", 1.3)
    assert (runtime.TRUE.key, runtime.TRUE.bound) == ("true_ratio", 1.3)


def test_the_size_is_that_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/file").write_bytes(b"x" * 100_000)

    assert 100_000 <= runtime.size(tmp_path) < 200_000
