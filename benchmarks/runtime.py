"""
The runtime image: how large it is, how long its copy takes, and its mpirt-rsh beside the one that pip installs.

Owns: what is run, what is measured of it, and the bounds. The other side is a fresh environment with mpirt in it
and nothing else: in that of the checkout, developers' tools make every start nearly twice as long.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import pairs
from benchmarks.access import Access, environment
from benchmarks.comparison import By, Comparison, Quantity
from benchmarks.measure import Cost, run
from testbed.ground import Namespace
from testbed.kube import images, paths
from testbed.kube.progress import step
from testbed.kube.shell import run as run_to_its_end
from tests.support.switchboards import PRIVATE, SWITCHBOARD

OURS, THEIRS = "runtime image", "pip install"

START = Quantity("start_ratio", "`mpirt-rsh --help`: wall time", "ms", 1.3, By.PAIRS)
TRUE = Quantity("true_ratio", "`mpirt-rsh POD true`: wall time", "ms", 1.3, By.PAIRS)
MOST_MEGABYTES = 60
MOST_SECONDS = 1.5

_MS = 1e-3
_MB = 1e6
_COPIES = 10


@dataclass(frozen=True, slots=True)
class Copied:
    """What is in a launcher's volume, and how long it took to get there."""

    megabytes: float
    seconds: Sequence[float]

    def figures(self) -> dict[str, float]:
        return {"size_mb": self.megabytes, "install_s": median(self.seconds)}

    def rendered(self) -> str:
        spread = f"{median(self.seconds):.2f} s ({min(self.seconds):.2f}-{max(self.seconds):.2f})"
        return (
            f"size of the copy: {self.megabytes:.1f} MB, bound {MOST_MEGABYTES} MB\n"
            f"time to copy, the program's start included: {spread}, bound {MOST_SECONDS} s"
        )


@contextmanager
def contest(namespace: Namespace, *, access: Access) -> Iterator[Contest]:
    """The image's folder and an installation by pip, on this machine, with one worker on the cluster."""
    with step("one worker"):
        [pod] = namespace.workers(1, "busybox")
    [image] = images.ensure(["runtime"])
    with step("the image's folder, and mpirt by pip"):
        folder = unpacked(image.path, namespace.folder / "image")
        pip = _by_pip(namespace.folder / "pip")
    with environment(access, namespace, pod) as env:
        # Each by itself: a switchboard would be one of the two.
        yield Contest(folder, pip, namespace.folder, pod, {**env, SWITCHBOARD: PRIVATE})


@dataclass(frozen=True, slots=True)
class Contest:
    """Both installations, ready to run commands in the same pod with the same access."""

    image: Path
    pip: Path
    scratch: Path
    pod: str
    env: dict[str, str]

    def copied(self) -> Copied:
        """Copies by the image's own program, each into a folder of its own."""
        targets = [self.scratch / f"copy-{number}" for number in range(_COPIES)]
        with step(f"{_COPIES} copies"):
            installer = str(self.image / "bin/mpirt-runtime-install")
            costs = [run([installer, str(target)], env=self.env) for target in targets]
        return Copied(size(targets[0]) / _MB, [cost.wall_seconds for cost in costs])

    def starts(self, runs: int) -> list[Comparison]:
        """The start alone, and a command in a pod; the programs are those of a copy and of pip."""
        ours, theirs = str(self.scratch / "copy-0/bin/mpirt-rsh"), str(self.pip / "bin/mpirt-rsh")
        return [self._compared(START, ours, theirs, ["--help"], runs),
                self._compared(TRUE, ours, theirs, [self.pod, "true"], runs)]  # fmt: skip

    def _compared(self, quantity: Quantity, ours: str, theirs: str, words: Sequence[str], runs: int) -> Comparison:
        with step(f"{runs} pairs of {quantity.what.partition(':')[0]}"):
            first, second = pairs.alternate(
                runs, lambda: run([ours, *words], env=self.env), lambda: run([theirs, *words], env=self.env)
            )
        return Comparison(quantity, _milliseconds(first), _milliseconds(second))


def unpacked(archive: Path, target: Path) -> Path:
    """The runtime's folder, out of the image's one layer."""
    target.mkdir()
    # Python's own way to unpack differs from release to release.
    run_to_its_end("tar", "--extract", "--file", archive, "--directory", target, "layer.tar")
    run_to_its_end("tar", "--extract", "--file", target / "layer.tar", "--directory", target)
    return target / "usr/lib/mpirt"


def size(folder: Path) -> int:
    """In bytes, of what takes room on a disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def _by_pip(folder: Path) -> Path:
    # Debian's Python, as the image has it: two Pythons would be compared otherwise.
    run_to_its_end("/usr/bin/python3", "-m", "venv", "--without-pip", folder)
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin/python", "--quiet")
    run_to_its_end(*pip, "install", "--disable-pip-version-check", "--no-deps", paths.PROJECT)
    return folder


def _milliseconds(costs: Sequence[Cost]) -> list[float]:
    return [cost.wall_seconds / _MS for cost in costs]
