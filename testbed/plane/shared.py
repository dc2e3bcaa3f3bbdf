"""
The one plane of a whole pytest run, which all its workers share.

The first that asks has it started, by a process of its own that ends with the run: with pytest itself, not with
the worker that came first, and however pytest ends.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from testbed.kube import buildcache, programs
from testbed.kube.commandlines import Site
from testbed.kube.errors import ClusterError
from testbed.kube.paths import PROJECT
from testbed.kube.pki import Secrets
from testbed.kube.programs import modules
from testbed.kube.wait import until
from testbed.plane import plane
from testbed.plane.plane import Plane

KUBERNETES = "MPIRT_TEST_KUBERNETES"
"""The variable that names the minor version; the newest without it."""

_STARTS_WITHIN = 180.0


def version() -> str:
    return os.environ.get(KUBERNETES) or modules.newest()


def join(folder: Path, run: int) -> Plane:
    """The plane whose files are in this folder, started where it isn't; it ends with the process `run`."""
    binaries = programs.ensure(version())
    record = folder / "site.json"
    with buildcache.exclusive(folder.with_name(f"{folder.name}.lock")):
        if not record.exists():
            _start(folder, run, record)
    return Plane(_read(record), binaries)


def _start(folder: Path, run: int, record: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "shared.log"
    with log.open("ab") as said:
        keeper = subprocess.Popen(
            [sys.executable, "-m", __name__, str(folder), str(run)],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd=PROJECT,
            start_new_session=True,
        )
    until(lambda: record.exists() or keeper.poll() is not None, within=_STARTS_WITHIN, what="a control plane",
          remedy=f"see {log}")  # fmt: skip
    if not record.exists():
        raise ClusterError("the control plane could not be started", remedy=f"see {log}")
    # It is not waited for: it ends after this process.
    keeper.returncode = 0


def _read(record: Path) -> Site:
    values = json.loads(record.read_text())
    folder = Path(values.pop("folder"))
    return Site(**{**values, "folder": folder, "secrets": Secrets(Path(values["secrets"]["folder"]))})


def _write(record: Path, site: Site) -> None:
    """Whole or not at all: somebody is waiting for it."""
    half = record.with_suffix(".half")
    half.write_text(json.dumps(asdict(site), default=str))
    half.rename(record)


def _keep(folder: Path, run: int) -> None:
    """Run the plane until that process has ended."""
    ended = os.pidfd_open(run)
    with plane.running(folder, programs.ensure(version())) as made:
        _write(folder / "site.json", made.site)
        select.select([ended], [], [])
    shutil.rmtree(folder / "etcd")


if __name__ == "__main__":
    _keep(Path(sys.argv[1]), int(sys.argv[2]))
