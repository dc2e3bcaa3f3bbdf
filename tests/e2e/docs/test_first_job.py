"""
Who follows "Your first job" in docs/mpijob.md word by word succeeds, and sees what the page shows.

The commands run as a person would type them: one after the other in bash, with kubectl and mpirt on PATH. What
they printed is in build/transcripts/first-job.txt. Only the image's name is another one, as the page asks for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from demo import program
from testbed.ground import Ground
from testbed.kube import paths
from testbed.kube.errors import ClusterError
from tests.e2e.controller import deployed
from tests.e2e.docs.page import Command, File, missing, section, steps
from tests.promises import promise

# The controller for all namespaces would act on the jobs of other tests.
pytestmark = pytest.mark.alone

PAGE = paths.PROJECT / "docs/mpijob.md"
TRANSCRIPT = paths.PROJECT / "build/transcripts/first-job.txt"
# The page's own names.
NAMESPACE, IMAGE = "first", "mpirt-example/pi"

# The longest wait that the page asks for, and some.
_ENDS_WITHIN = 330.0


@pytest.fixture
def cluster_of_the_reader(own_cluster: Ground, tmp_path: Path) -> Iterator[Ground]:
    """A cluster with the controller and the image, and without the page's namespace, before and after."""
    _refuse_namespace_of_others(own_cluster)
    with deployed.everywhere(own_cluster, tmp_path):
        try:
            yield own_cluster
        finally:
            # While the controller runs: it may have a job to end.
            own_cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false")


def _refuse_namespace_of_others(cluster: Ground) -> None:
    """Wait for one that is on its way out, and fail if it is in use: another run may be following the page."""
    found = cluster.kubectl("get", "namespace", NAMESPACE, "--ignore-not-found", "--output=name").stdout.strip()
    if not found:
        return
    phase = cluster.kubectl.get("namespace", NAMESPACE)["status"]["phase"]
    if phase != "Terminating":
        raise ClusterError(
            f"namespace {NAMESPACE} exists, which docs/mpijob.md creates",
            remedy=f"delete it: kubectl delete namespace {NAMESPACE}",
        )
    cluster.kubectl("wait", f"namespace/{NAMESPACE}", "--for=delete", "--timeout=180s", timeout=200)


@dataclass(frozen=True)
class Reader:
    """A person with a folder, a shell and a kubeconfig."""

    folder: Path
    image: str

    def save(self, file: File) -> None:
        text = file.text.replace(f"image: {IMAGE}\n", f"image: {self.image}\n")
        (self.folder / file.name).write_text(text, encoding="utf-8")
        self._note(f"{file.name} is saved, with image {self.image}\n\n")

    def type(self, command: Command) -> str:
        """Run it and return what it printed; a command that fails, or never ends, is an AssertionError."""
        begun = time.monotonic()
        self._note(f"$ {command.line}\n")
        done = subprocess.run(
            ["timeout", f"{_ENDS_WITHIN:.0f}", "bash", "-c", command.line],
            check=False,
            cwd=self.folder,
            env={
                **os.environ,
                "KUBECONFIG": str(self.folder / "kubeconfig"),
                "PATH": f"{self.folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._note(f"{done.stdout}({time.monotonic() - begun:.1f} s, exit code {done.returncode})\n\n")
        assert done.returncode == 0, f"{command.line}: exit code {done.returncode}\n{done.stdout}"
        return done.stdout

    @staticmethod
    def _note(text: str) -> None:
        with TRANSCRIPT.open("a", encoding="utf-8") as file:
            file.write(text)


@pytest.fixture
def reader(cluster_of_the_reader: Ground, tmp_path: Path) -> Reader:
    """Nothing of it is shared: the page may change the kubeconfig."""
    kubectl = cluster_of_the_reader.kubectl
    folder = tmp_path / "reader"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/kubectl").symlink_to(kubectl.program)
    (folder / "kubeconfig").write_bytes(kubectl.kubeconfig.read_bytes())
    TRANSCRIPT.parent.mkdir(parents=True, exist_ok=True)
    TRANSCRIPT.write_text("", encoding="utf-8")
    return Reader(folder, program.load())


@promise("The commands of Your first job print what the page shows.", of="MPIJob")
def test_the_commands_of_the_page_print_what_it_shows(reader: Reader, cluster_of_the_reader: Ground) -> None:
    page = section(PAGE.read_text(encoding="utf-8"), "Your first job")
    lacking: dict[str, list[str]] = {}

    for step in steps(page):
        if isinstance(step, File):
            reader.save(step)
        elif lines := missing(step.shown, reader.type(step)):
            lacking[step.line] = lines

    assert lacking == {}, f"the page shows lines that were not printed; see {TRANSCRIPT}"
    left = cluster_of_the_reader.kubectl("get", "namespace", NAMESPACE, "--ignore-not-found", "--output=name")
    assert left.stdout == "", "the page removes all that it has created"
