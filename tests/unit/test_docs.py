"""What the documents tell people to type exists, and what they link to is there."""

from __future__ import annotations

import re
import shlex
import textwrap

import click
import pytest
import yaml

from benchmarks.__main__ import cli as benchmarks
from mpirt.cli.launchers import LAUNCHERS
from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.monitoring.metrics import Metrics
from mpirt.errors import ExitCode
from testbed.kube.__main__ import cli as cluster
from tests.e2e.rsh import launcher
from tests.promises import promise
from tests.unit.controller.schemas import both_ways, crd
from tests.unit.layers import PROJECT

DOCUMENTS = sorted(
    path.relative_to(PROJECT).as_posix()
    for pattern in ("*.md", "docs/*.md", "examples/*/*.md", "testbed/*.md")
    for path in PROJECT.glob(pattern)
)


def text_of(document: str) -> str:
    return (PROJECT / document).read_text(encoding="utf-8")


def code_of(text: str) -> list[str]:
    """What is set as code: between backticks, and in lines that are indented by four."""
    return re.findall(r"`([^`\n]+)`", text) + re.findall(r"^ {4}(.+)$", text, re.MULTILINE)


def targets_named(text: str) -> set[str]:
    """The words after `make` up to an explanation, but for variables and options."""
    calls = [re.match(r"(?:\S+=\S+ )*make( .+?)(?:  |$)", code) for code in code_of(text)]
    words = [word for call in calls if call for word in shlex.split(call[1])]
    return {word for word in words if re.fullmatch(r"[a-z][a-z.-]*", word)}


def commands_named(program: str, text: str) -> set[tuple[str, ...]]:
    """The words after `python -m program` up to an explanation."""
    calls = [re.search(rf"python -m {re.escape(program)} (.+?)(?:  |$)", code) for code in code_of(text)]
    return {tuple(call[1].split()) for call in calls if call}


PROGRAMS: dict[str, click.Command] = {"testbed.kube": cluster, "benchmarks": benchmarks}
MAKEFILE_TARGETS = set(re.findall(r"^([a-z][a-z.-]*):", text_of("Makefile"), re.MULTILINE))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_make_target_that_is_named_exists(document: str) -> None:
    assert targets_named(text_of(document)) <= MAKEFILE_TARGETS


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("program", ["testbed.kube", "benchmarks"])
def test_every_command_that_is_named_exists(program: str, document: str) -> None:
    for words in commands_named(program, text_of(document)):
        command: click.Command | None = PROGRAMS[program]
        for word in words:
            # Behind a command come its arguments.
            if isinstance(command, click.Group) and not word.startswith("-"):
                command = command.commands.get(word)
        assert command, f"python -m {program} {' '.join(words)}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_to_a_file_leads_somewhere(document: str) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text_of(document))
    files = [link for link in links if "://" not in link]

    assert [file for file in files if not (PROJECT / document).parent.joinpath(file).exists()] == []


def test_the_documented_permissions_are_those_that_tests_grant() -> None:
    [block] = re.findall(
        r"^    apiVersion: rbac.*?\n(?=\n\S)", text_of("docs/operations.md"), re.DOTALL | re.MULTILINE
    )
    role, _binding = yaml.safe_load_all(textwrap.dedent(block))

    assert role["rules"] == launcher.rules(["worker-0", "worker-1"])


@promise("Every metric that the documents name exists.", of="mpirt-controller", no_cluster="names are compared")
def test_every_metric_that_is_named_exists() -> None:
    metrics = Metrics()
    metrics.show(
        depth=lambda: 0.0, jobs=lambda: 0.0, launchers=tuple, leads=lambda: True, kinds=dict, failing=dict
    )
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", metrics.page().decode(), re.MULTILINE))
    histograms = [name for name, kind in types.items() if kind == "histogram"]

    named = set(re.findall(r"\b(?:mpi_operator|mpirt_controller|process)_[a-z_]+", text_of("docs/operations.md")))

    assert len(named) > 5
    assert named <= types.keys() | {f"{name}_{end}" for name in histograms for end in ("bucket", "count")}


def test_the_variables_that_are_told_are_those_that_are_printed() -> None:
    page = text_of("docs/operations.md")

    for name, variables in LAUNCHERS.items():
        [row] = re.findall(rf"^\| `{name}` \|.*$", page, re.MULTILINE)
        assert [key for key in variables(2) if f"`{key}=" not in row and name != "horovod"] == []


def test_named_targets_and_commands_are_found() -> None:
    text = """
Run `make cluster-down` or `python -m testbed.kube down`, or

    A=b make check X='y z'      all that there is
    .venv/bin/python -m testbed.kube fault oom POD  end a pod
    .venv/bin/python -m benchmarks rsh --runs 3
"""

    assert targets_named(text) == {"cluster-down", "check"}
    assert commands_named("testbed.kube", text) == {("down",), ("fault", "oom", "POD")}
    assert commands_named("benchmarks", text) == {("rsh", "--runs", "3")}


def test_the_changelog_says_which_codes_are_ours() -> None:
    own = sorted(code for code in ExitCode if code != ExitCode.OK)

    assert f"{own[0]:d} to {own[-2]:d} and {own[-1]:d}" in text_of("CHANGELOG.md")


def test_the_job_in_the_readme_fits_the_crd_and_is_read_without_a_notice() -> None:
    [block] = re.findall(r"^    # job\.yaml\n((?: {4}.*\n)+)", text_of("README.md"), re.MULTILINE)
    job = yaml.safe_load(textwrap.dedent(block))
    [schema] = [one for one in crd("mpijobs.kubeflow.org")["spec"]["versions"] if one["name"] == "v2beta1"]

    unknown, _missing = both_ways(job["spec"], schema["schema"]["openAPIV3Schema"]["properties"]["spec"])
    job["metadata"] |= {"namespace": "ml", "uid": "uid-1", "generation": 1}
    spec = MPI_JOB.parse(job)

    # A template's spec is any pod's.
    assert {field for field in unknown if ".template.spec." not in field} == set()
    assert spec.notices == ()
    assert spec.workers.names == ("hello-worker-0", "hello-worker-1")
