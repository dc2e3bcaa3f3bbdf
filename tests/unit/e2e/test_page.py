"""A page that people follow: its form, the comparison with real output, and the job of docs/mpijob.md."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.manifests.config_map import hostfile
from tests.e2e.docs.page import Command, File, PageError, missing, section, steps
from tests.unit.layers import PROJECT

PAGE = """
# Page

## First

Save this:

```yaml
# job.yaml
kind: MPIJob
```

    $ this is only shown

```console
$ kubectl apply -f job.yaml
job created
$ kubectl get job
NAME   AGE
...
```

## Second

```console
$ true
```
"""


class TestSteps:
    def test_are_files_and_commands_in_the_order_of_the_page(self) -> None:
        assert steps(section(PAGE, "First")) == [
            File("job.yaml", "# job.yaml\nkind: MPIJob\n"),
            Command("kubectl apply -f job.yaml", ("job created",)),
            Command("kubectl get job", ("NAME   AGE", "...")),
        ]

    def test_the_last_section_ends_with_the_page(self) -> None:
        assert steps(section(PAGE, "Second")) == [Command("true")]

    def test_a_section_that_is_missing_is_an_error(self) -> None:
        with pytest.raises(PageError, match=r"expected one section 'Third', found 0"):
            section(PAGE, "Third")

    @pytest.mark.parametrize(
        ("block", "why"),
        [
            pytest.param("```yaml\nkind: MPIJob\n```", "file's name, found 'kind: MPIJob'", id="file"),
            pytest.param("```console\nkubectl\n```", r"after '\$ ', found 'kubectl'", id="prompt"),
            pytest.param("```sh\nkubectl\n```", "expected a block of yaml or console, found sh", id="language"),
        ],
    )
    def test_a_block_of_another_form_is_an_error(self, block: str, why: str) -> None:
        with pytest.raises(PageError, match=why):
            steps(block)


class TestOutput:
    @pytest.mark.parametrize(
        ("shown", "real"),
        [
            pytest.param("NAME   AGE", "NAME      AGE", id="columns of another width"),
            pytest.param("hello   9s", "hello   2m13s", id="an age"),
            pytest.param("hello-launcher-x7k2p   1/1", "hello-launcher-abcde   1/1", id="the name of a pod"),
            pytest.param("runs on node node-1", "runs on node node-2", id="a node"),
            pytest.param("runs on node node-1; ...", "runs on node node-1; 2 of 2", id="a line that is cut"),
        ],
    )
    def test_may_differ_in_what_varies(self, shown: str, real: str) -> None:
        assert missing([shown], f"first\n{real}\nlast\n") == []

    @pytest.mark.parametrize(
        ("shown", "real"),
        [
            pytest.param("hello   Running", "hello   Created", id="a word"),
            pytest.param("2 of 2 workers", "1 of 2 workers", id="a number"),
            pytest.param("round 3", "round 30", id="only a part of a line"),
            pytest.param("hello-worker-0", "hello-worker-1", id="another worker"),
        ],
    )
    def test_lacks_a_line_that_differs_in_more(self, shown: str, real: str) -> None:
        assert missing([shown, "..."], real) == [shown]


class TestTheFirstJob:
    SECTION = section((PROJECT / "docs/mpijob.md").read_text(encoding="utf-8"), "Your first job")

    def job(self) -> dict[str, Any]:
        [file] = [step for step in steps(self.SECTION) if isinstance(step, File)]
        found: dict[str, Any] = yaml.safe_load(file.text)
        return found

    def test_is_a_valid_job_that_needs_no_remark(self) -> None:
        body = self.job()
        body["metadata"] |= {"namespace": "first", "uid": "1", "creationTimestamp": "2026-05-04T12:00:00Z"}

        spec = MPI_JOB.parse(body)

        assert spec.notices == ()
        assert hostfile(spec) == "hello-worker-0 slots=1\nhello-worker-1 slots=1\n"

    def test_uses_the_image_of_the_example(self) -> None:
        example = yaml.safe_load((PROJECT / "examples/pi/pi.yaml").read_text(encoding="utf-8"))

        assert images(self.job()) == images(example)

    def test_every_command_is_about_the_namespace_of_the_page(self) -> None:
        lines = [step.line for step in steps(self.SECTION) if isinstance(step, Command)]

        assert [line for line in lines if " -n first" not in line and " namespace first" not in line] == []


def images(job: dict[str, Any]) -> set[str]:
    replicas = job["spec"]["mpiReplicaSpecs"].values()
    return {each["image"] for replica in replicas for each in replica["template"]["spec"]["containers"]}
