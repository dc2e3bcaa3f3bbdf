"""What a task asks for is read with the path of what is wrong; the CRD and the reader agree."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mpirt.controller.gputasks.spec import DEFAULT_IMAGE, KIND, LONGEST_NAME, RULES, parse
from mpirt.controller.gputasks.status import Phase, TaskStatus, read_status, write_status
from mpirt.controller.model.conditions import Condition, Type
from mpirt.errors import SpecError
from tests.unit.controller.gputasks.taskworld import FIELDS, gpu_task, named_task
from tests.unit.controller.jobs import NOON, Body
from tests.unit.controller.schemas import crd, described

CRD: Body = crd("gputasks.falldio.com")
[VERSION] = CRD["spec"]["versions"]
SCHEMA = VERSION["schema"]["openAPIV3Schema"]
SPEC = SCHEMA["properties"]["spec"]["properties"]
STATUS = SCHEMA["properties"]["status"]["properties"]

GOOD = {
    "memory": ["16Gi", "500M", "1e9", "0.5Gi", "1000", 1000, "", "12E"],
    "cpu": ["8", "0.5", "500m", 8, ""],
    "gpu": ["rtx4090", "NVIDIA-A100-SXM4-40GB", "Tesla_V100.1", 4090, ""],
    "gpu-amount": ["1", "0", 2, ""],
    "priority": ["gpu-low-priority", "a.b", 7, ""],
}
BAD = {
    "memory": ["16gi", "16 Gi", "Gi", "-1Gi", "16GiB", "1.", "x" * 33, -1],
    "cpu": ["eight", "0,5", "8cores", -1],
    "gpu": ["rtx 4090", "-a", "a-", "x" * 64, "a/b", -1],
    "gpu-amount": ["one", "0.5", "1Gi", "-1", "1" * 10, -1],
    "priority": ["Gpu-Low", "-a", "a_b", "x" * 254, -1],
}


def pairs(table: dict[str, list[Any]]) -> list[tuple[str, Any]]:
    return [(name, value) for name, values in table.items() for value in values]


def pattern(name: str) -> str:
    """The pattern in the CRD's rule for a field."""
    [rule] = SPEC[name]["x-kubernetes-validations"]
    [found] = re.findall(r"self\.matches\('\^(.*)\$'\)", rule["rule"])
    return str(found)


class TestTheFiveFields:
    @pytest.mark.parametrize(("name", "value"), pairs(GOOD))
    def test_a_good_value_is_taken_as_text(self, name: str, value: object) -> None:
        assert getattr(parse(gpu_task(**{name: value})), name.replace("-", "_")) == str(value)

    @pytest.mark.parametrize(("name", "value"), pairs(BAD))
    def test_a_bad_value_is_refused(self, name: str, value: object) -> None:
        with pytest.raises(SpecError) as caught:
            parse(gpu_task(**{name: value}))

        assert caught.value.field == f"spec.{name}"
        assert str(caught.value).startswith(f"spec.{name}: {RULES[name].must}; got ")

    @pytest.mark.parametrize("value", [0.5, True, ["8"], {}])
    def test_only_texts_and_whole_numbers_are_taken(self, value: object) -> None:
        with pytest.raises(SpecError, match=r"^spec.cpu: expected text or a whole number, got "):
            parse(gpu_task(cpu=value))

    @pytest.mark.parametrize("name", RULES)
    def test_none_of_them_is_required(self, name: str) -> None:
        assert getattr(parse(gpu_task(**{name: None})), name.replace("-", "_")) == ""


class TestTheRest:
    def test_a_spec_is_required(self) -> None:
        with pytest.raises(SpecError, match=r"^spec: is missing"):
            parse({**gpu_task(), "spec": None})

    def test_a_name_fits_into_a_label(self) -> None:
        assert parse(named_task("x" * LONGEST_NAME)).name == "x" * 63
        with pytest.raises(SpecError, match=r"^metadata.name: must have at most 63 characters, has 64"):
            parse(named_task("x" * 64))

    @pytest.mark.parametrize(
        ("field", "spec"),
        [
            ("spec.image", {"image": 1}),
            ("spec.command", {"command": "sh"}),
            ("spec.args[0]", {"args": [1]}),
            ("spec.template", {"template": []}),
            ("spec.template.metadata.labels.a", {"template": {"metadata": {"labels": {"a": 1}}}}),
            ("spec.template.metadata.annotations", {"template": {"metadata": {"annotations": []}}}),
            ("spec.template.spec", {"template": {"spec": []}}),
            ("spec.template.spec.nodeSelector", {"template": {"spec": {"nodeSelector": []}}}),
            ("spec.template.spec.containers", {"template": {"spec": {"containers": [{"name": "main"}]}}}),
            (
                "spec.template.spec.containers[0].resources.limits",
                {"template": {"spec": {"containers": [{"name": "gpu-task", "resources": {"limits": []}}]}}},
            ),
        ],
    )
    def test_a_field_of_the_wrong_kind_is_named(self, field: str, spec: Body) -> None:
        with pytest.raises(SpecError) as caught:
            parse(gpu_task(**spec))

        assert caught.value.field == field


class TestTheSchema:
    def test_it_names_what_the_controller_watches(self) -> None:
        names = CRD["spec"]["names"]

        assert CRD["metadata"]["name"] == f"{KIND.resource.plural}.{KIND.resource.group}"
        assert f"{CRD['spec']['group']}/{VERSION['name']}" == KIND.resource.api_version
        assert (names["kind"], names["listKind"]) == (KIND.resource.kind, "GPUTaskList")
        assert (names["plural"], names["singular"]) == (KIND.resource.plural, "gputask")
        assert (VERSION["served"], VERSION["storage"], CRD["spec"]["scope"]) == (True, True, "Namespaced")

    def test_it_has_the_five_fields_and_four_more(self) -> None:
        assert SPEC.keys() == {*FIELDS, "image", "command", "args", "template"}

    @pytest.mark.parametrize("name", RULES)
    def test_it_limits_a_field_as_the_reader_does(self, name: str) -> None:
        [rule] = SPEC[name]["x-kubernetes-validations"]

        # The CRD writes a full stop as [.], because a backslash is escaped twice there.
        assert pattern(name).replace("[.]", r"\.") == RULES[name].pattern
        assert rule["message"].replace('"', "") == RULES[name].must
        assert SPEC[name]["maxLength"] == RULES[name].longest
        assert SPEC[name]["x-kubernetes-int-or-string"] is True

    def test_a_template_may_lack_containers_and_their_images(self) -> None:
        pod = SPEC["template"]["properties"]["spec"]

        assert "required" not in pod
        assert pod["properties"]["containers"]["items"]["required"] == ["name"]

    def test_every_field_is_explained(self) -> None:
        obvious = (".labels", ".annotations")
        said = {
            path: words
            for part in ("spec", "status")
            for path, words in described(SCHEMA["properties"][part], part)
            if not path.endswith(obvious)
        }

        assert [path for path, words in said.items() if not words.endswith(".")] == []

    def test_the_default_image_is_named(self) -> None:
        assert DEFAULT_IMAGE in SPEC["image"]["description"]

    def test_the_longest_name_is_the_readers(self) -> None:
        [rule] = SCHEMA["x-kubernetes-validations"]

        assert rule["rule"] == f"self.metadata.name.size() <= {LONGEST_NAME}"


class TestTheStatus:
    WHOLE = TaskStatus(
        phase=Phase.FAILED,
        pod="train",
        uid="uid",
        node="node-1",
        restarts=2,
        left="node-2",
        started=NOON,
        completed=NOON,
        generation=3,
        conditions={
            kind: Condition(kind, status=True, reason="GPUTaskFailed", message="words", changed=NOON, updated=NOON)
            for kind in (Type.RUNNING, Type.OUTDATED, Type.FAILED)
        },
    )

    def test_what_is_written_is_read_back(self) -> None:
        assert read_status(write_status(self.WHOLE)) == self.WHOLE

    def test_what_is_written_is_in_the_schema(self) -> None:
        written: Any = write_status(self.WHOLE)

        assert written.keys() == STATUS.keys()
        assert written["conditions"][0].keys() == STATUS["conditions"]["items"]["properties"].keys()
        assert [row["type"] for row in written["conditions"]] == [Type.RUNNING, Type.OUTDATED, Type.FAILED]

    def test_a_condition_without_times_is_very_old(self) -> None:
        found = read_status({"conditions": [{"type": "Running", "status": "True"}]})

        assert found.running is not None
        assert found.running.updated.year == 1970

    def test_a_new_task_has_none(self) -> None:
        assert read_status({}) == TaskStatus()
        assert write_status(TaskStatus()) == {"restarts": 0, "observedGeneration": 0, "conditions": []}
