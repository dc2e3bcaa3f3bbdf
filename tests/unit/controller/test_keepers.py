"""The keeper's files: in the ConfigMaps of jobs that have workers, and mounted where those expect them."""

from __future__ import annotations

import copy
import shutil
import subprocess
import sys
from base64 import b64decode, b64encode
from dataclasses import replace
from pathlib import Path

import pytest

from mpirt import keeper
from mpirt.controller.main import keeper_files, report_missing
from mpirt.controller.manifests.config_map import config_map
from mpirt.controller.manifests.launcher import launcher_job
from mpirt.controller.manifests.workers import stateful_set
from mpirt.rsh.protocol.entrance import Keepers, greeting
from tests.unit.controller.jobs import SETTINGS, Body, mpi_job, parsed
from tests.unit.controller.logs import Lines
from tests.unit.controller.world import World, writes
from tests.unit.layers import PROJECT

KEEPERS = {"keeper-1-amd64": "f0VMRg==", "keeper-1-arm64": "f0VMRgE="}
INSTALLED = [keeper.file_name(one) for one in keeper.ARCHITECTURES]
# Of all data and binaryData of an object, as the API server counts it.
LARGEST_CONFIG_MAP = 1024 * 1024
WITH = replace(SETTINGS, keepers=KEEPERS)


def started(**job: object) -> World:
    """A job that runs, made by a controller that has the files."""
    world = World(mpi_job(**job), settings=WITH)  # type: ignore[arg-type]  # fields of the spec
    world.start()
    return world


@pytest.fixture
def world() -> World:
    """A job that runs, made by a controller that has the files."""
    return started()


class TestWhatIsInstalled:
    def test_is_read_once_for_all_jobs_in_the_form_of_a_config_map(self) -> None:
        programs = {name: (PROJECT / "mpirt/keeper" / name).read_bytes() for name in INSTALLED}

        assert keeper_files() == {name: b64encode(text).decode() for name, text in programs.items()}

    def test_needs_not_be_there(self, tmp_path: Path) -> None:
        shutil.copytree(
            PROJECT / "mpirt", tmp_path / "mpirt", ignore=shutil.ignore_patterns("keeper-*", "__pycache__")
        )
        code = "from mpirt.controller.main import keeper_files; print(keeper_files())"

        done = subprocess.run(
            [sys.executable, "-B", "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
        )

        assert done.stdout == "{}\n"

    def test_and_what_is_missing_is_reported_in_one_line(self) -> None:
        log = Lines()

        report_missing({}, log)

        missing = {"missing": ",".join(INSTALLED)}
        line = "keeper not installed; in workers without a place for it no command can be started"
        assert log.lines == [("warning", line, missing)]

    def test_a_whole_installation_is_no_news(self) -> None:
        log = Lines()

        report_missing(keeper_files(), log)

        assert log.lines == []


class TestTheConfigMap:
    def test_holds_them_beside_the_scripts(self) -> None:
        made = config_map(parsed(), KEEPERS)

        assert made["binaryData"] == KEEPERS
        assert made["data"] == config_map(parsed(), {})["data"]

    def test_of_the_largest_job_has_room_for_all_of_them(self) -> None:
        made = config_map(parsed(replicas=5000), keeper_files())

        sizes = [len(text) for text in made["data"].values()]
        sizes += [len(b64decode(text)) for text in made["binaryData"].values()]
        assert sum(sizes) < LARGEST_CONFIG_MAP

    def test_without_them_has_no_such_section(self) -> None:
        assert "binaryData" not in config_map(parsed(), {})

    @pytest.mark.parametrize(
        "edited",
        [
            pytest.param({**KEEPERS, "keeper-1-amd64": "AAAA"}, id="another program"),
            pytest.param({"keeper-1-amd64": KEEPERS["keeper-1-amd64"]}, id="one gone"),
            pytest.param({**KEEPERS, "more": ""}, id="one more"),
            pytest.param(None, id="all gone"),
        ],
    )
    def test_that_was_edited_is_put_right(self, world: World, edited: Body | None) -> None:
        world.get("ConfigMap").pop("binaryData")
        world.get("ConfigMap").update({} if edited is None else {"binaryData": edited})

        assert writes(world.settle()) == ["patch ConfigMap"]
        assert world.get("ConfigMap")["binaryData"] == KEEPERS

    @pytest.mark.parametrize(
        ("policy", "kept"),
        [pytest.param("None", True, id="they stay"), pytest.param("Running", False, id="they go")],
    )
    def test_of_a_finished_job_has_them_as_long_as_it_has_workers(self, policy: str, *, kept: bool) -> None:
        world = started(runPolicy={"cleanPodPolicy": policy})

        world.finish(succeeded=1)

        assert ("binaryData" in world.get("ConfigMap"), "StatefulSet" in world.kinds()) == (kept, kept)

    def test_of_a_suspended_job_gets_them_when_it_is_resumed(self, world: World) -> None:
        world.change(runPolicy={"suspend": True})
        world.settle()
        assert "binaryData" not in world.get("ConfigMap")

        world.change(runPolicy={})
        done = writes(world.later(60))

        assert world.get("ConfigMap")["binaryData"] == KEEPERS
        assert done.index("patch ConfigMap") < done.index("create StatefulSet")


class TestAnotherVersionOfTheController:
    """It writes other objects, and disturbs nothing that runs."""

    def test_that_has_the_files_adds_them_and_touches_nothing_else(self) -> None:
        world = World(settings=SETTINGS)
        world.start()
        workers = copy.deepcopy(world.get("StatefulSet"))

        world.settings = WITH

        assert writes(world.settle()) == ["patch ConfigMap"]
        assert world.get("StatefulSet") == workers

    def test_that_has_none_takes_them_away_and_touches_nothing_else(self, world: World) -> None:
        world.settings = SETTINGS

        assert writes(world.settle()) == ["patch ConfigMap"]
        assert "binaryData" not in world.get("ConfigMap")

    def test_that_has_other_files_replaces_them_and_touches_nothing_else(self, world: World) -> None:
        world.settings = replace(SETTINGS, keepers={"keeper-2-amd64": "AAAA"})

        assert writes(world.settle()) == ["patch ConfigMap"]
        assert world.get("ConfigMap")["binaryData"] == {"keeper-2-amd64": "AAAA"}

    def test_that_knows_the_nodes_leaves_out_what_none_can_run(self, world: World) -> None:
        world.settings = replace(WITH, architectures=frozenset({"arm64"}))

        assert writes(world.settle()) == ["patch ConfigMap"]
        assert world.get("ConfigMap")["binaryData"] == {"keeper-1-arm64": "f0VMRgE="}

    def test_leaves_a_finished_jobs_config_map_as_it_is(self) -> None:
        world = World(mpi_job(runPolicy={"cleanPodPolicy": "Running"}), settings=SETTINGS)
        world.start()
        world.finish(succeeded=1)
        world.later(60)

        world.settings = WITH

        assert world.settle() == []


class TestWorkers:
    def test_have_them_beside_the_stub_and_start_without_them_too(self) -> None:
        made = stateful_set(parsed(), WITH)["spec"]["template"]["spec"]

        assert made["volumes"] == [
            {
                "name": "mpi-job-config",
                "projected": {
                    "sources": [
                        {
                            "configMap": {
                                "name": "train-config",
                                "items": [{"key": "kubexec.sh", "path": "kubexec.sh", "mode": 0o555}],
                            }
                        },
                        {
                            "configMap": {
                                "name": "train-config",
                                "items": [
                                    {"key": "keeper-1-amd64", "path": "keeper-1-amd64", "mode": 0o555},
                                    {"key": "keeper-1-arm64", "path": "keeper-1-arm64", "mode": 0o555},
                                ],
                                "optional": True,
                            }
                        },
                    ]
                },
            }
        ]
        assert made["containers"][0]["volumeMounts"] == [{"name": "mpi-job-config", "mountPath": "/etc/mpi"}]

    def test_the_agent_looks_for_them_there(self) -> None:
        [container] = stateful_set(parsed(), WITH)["spec"]["template"]["spec"]["containers"]
        place = f"{container['volumeMounts'][0]['mountPath']}/{keeper.file_name('$mpirt_arch')}"

        assert f'"{place}"'.encode() in greeting("nonce1234", Keepers({}))

    def test_launchers_have_no_use_for_them(self) -> None:
        assert launcher_job(parsed(), WITH) == launcher_job(parsed(), SETTINGS)


def test_a_job_costs_as_many_writes_with_them() -> None:
    with_them, without = started(), World()
    without.start()

    assert with_them.writes == without.writes
