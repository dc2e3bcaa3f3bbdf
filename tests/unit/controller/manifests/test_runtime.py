"""The runtime image in the launcher's pod, mounted or copied."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mpirt.controller.manifests.launcher import launcher_template
from mpirt.controller.model.spec import RuntimeVolume, Settings
from tests.unit.controller.jobs import SETTINGS, container, parsed, template

ABLE = replace(SETTINGS, why_copied="")
ALWAYS = replace(SETTINGS, runtime_volume=RuntimeVolume.IMAGE)
NEVER = replace(ABLE, runtime_volume=RuntimeVolume.COPY)
NONE = Settings(runtime_image="", why_copied="")


def made(settings: Settings, *inits: dict[str, Any], **pod: Any) -> dict[str, Any]:
    given = template(container("mpi"), initContainers=list(inits), **pod)
    found: dict[str, Any] = launcher_template(parsed(launcher=given), settings)
    return found


@pytest.mark.parametrize("settings", [ABLE, ALWAYS], ids=["nodes can", "an administrator says so"])
def test_the_image_is_mounted_and_no_container_copies_it(settings: Settings) -> None:
    pod = made(settings, container("fetch"))["spec"]

    mount = {"name": "mpirt-runtime", "mountPath": "/opt/mpirt", "readOnly": True}
    assert pod["volumes"][-1] == {"name": "mpirt-runtime", "image": {"reference": "mpirt-runtime:1"}}
    assert pod["containers"][0]["volumeMounts"][-1] == mount
    assert [each["name"] for each in pod["initContainers"]] == ["fetch"]


def test_the_wait_of_an_elastic_job_copies_nothing_from_a_mounted_image() -> None:
    [wait] = launcher_template(parsed(elastic={"minReplicas": 1}), ABLE)["spec"]["initContainers"]

    mount = {"name": "mpirt-runtime", "mountPath": "/opt/mpirt", "readOnly": True}
    assert (wait["command"], wait["volumeMounts"]) == (["/opt/mpirt/bin/mpirt-discover"], [mount])


@pytest.mark.parametrize(
    ("settings", "pod", "said"),
    [
        pytest.param(ABLE, {}, "image volume", id="nodes can"),
        pytest.param(SETTINGS, {}, "copy: the controller may not list nodes", id="nodes that can not be listed"),
        pytest.param(NEVER, {}, "copy: --runtime-volume=copy", id="an administrator wants the copy"),
        pytest.param(
            ABLE,
            {"runtimeClassName": "gvisor"},
            "copy: what the runtime class gvisor can is unknown",
            id="a runtime class",
        ),
        pytest.param(ABLE, {"hostUsers": False}, "copy: the pod has a user namespace", id="a user namespace"),
        pytest.param(ABLE, {"hostUsers": True, "runtimeClassName": None}, "image volume", id="neither of them"),
        pytest.param(ALWAYS, {"runtimeClassName": "gvisor"}, "image volume", id="an administrator's word wins"),
        pytest.param(NONE, {}, None, id="no runtime image"),
    ],
)
def test_the_pod_says_what_it_has_got_and_why(settings: Settings, pod: dict[str, Any], said: str | None) -> None:
    template = made(settings, **pod)

    [volume] = [each for each in template["spec"]["volumes"] if each["name"] == "mpirt-runtime"] or [{}]
    assert template["metadata"]["annotations"].get("mpirt.dev/runtime") == said
    assert ("image" in volume) == (said == "image volume")
