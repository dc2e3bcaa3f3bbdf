"""Which processors ranks get, and how many threads their libraries start."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.manifests.launcher import launcher_template
from mpirt.controller.manifests.workers import worker_template
from mpirt.controller.model.spec import Settings
from tests.unit.controller.jobs import SETTINGS, container, parsed, template

OPEN_MPI = ("OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy")
EXCLUSIVE = Settings(runtime_image="mpirt/runtime:1", exclusive_cpus=True)

Resources = dict[str, dict[str, Any]]
WHOLE: Resources = {"limits": {"cpu": 4, "memory": "8Gi"}}


def variables(made: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in made["spec"]["containers"][0].get("env", [])}


def launcher(settings: Settings = SETTINGS, **job: Any) -> dict[str, str]:
    return variables(launcher_template(parsed(**job), settings))


def is_unbound(made: dict[str, str]) -> bool:
    return all(made.get(name) == "none" for name in OPEN_MPI)


def of(resources: Resources, **more: Any) -> dict[str, Any]:
    return template(container("mpi", resources=resources, **more))


class TestARankIsBound:
    def test_to_no_processor_by_default(self) -> None:
        assert is_unbound(launcher())
        assert launcher(mpiImplementation="Intel")["I_MPI_PIN"] == "0"

    @pytest.mark.parametrize(
        "words",
        [
            ["mpirun", "--map-by", "ppr:2:node:PE=4", "train"],
            ["bash", "-c", "mpirun --map-by slot:pe=2 train"],
            ["mpirun", "--map-by", "pe-list=0,1:ordered", "train"],
            ["mpirun", "--map-by", "socket:SPAN,PE=2", "train"],
            ["mpirun", "--map-by", "rankfile:file=/ranks", "train"],
            ["mpirun", "--cpus-per-rank", "2", "train"],
        ],
    )
    def test_as_the_command_says(self, words: list[str]) -> None:
        for given in ({"command": words}, {"command": words[:1], "args": words[1:]}):
            assert launcher(launcher=template(container("mpi", **given))).keys().isdisjoint(OPEN_MPI)

    @pytest.mark.parametrize("word", ["--type=adam", "--pipe=2", "DATATYPE=float", "--type-list=a,b"])
    def test_to_none_where_a_word_only_looks_so(self, word: str) -> None:
        assert is_unbound(launcher(launcher=template(container("mpi", command=["mpirun", "train", word]))))

    @pytest.mark.parametrize(
        ("mpi", "name", "value", "ours"),
        [
            ("OpenMPI", "PRTE_MCA_rmaps_default_mapping_policy", "slot:PE=2", OPEN_MPI[1]),
            ("OpenMPI", "OMPI_MCA_rmaps_rank_file_path", "/ranks", OPEN_MPI[0]),
            ("Intel", "I_MPI_PIN_DOMAIN", "omp", "I_MPI_PIN"),
        ],
    )
    def test_as_a_variable_says(self, mpi: str, name: str, value: str, ours: str) -> None:
        given = template(container("mpi", env=[{"name": name, "value": value}]))

        assert ours not in launcher(launcher=given, mpiImplementation=mpi)

    def test_by_a_policy_of_the_users(self) -> None:
        given = template(container("mpi", env=[{"name": name, "value": "core"} for name in OPEN_MPI]))

        assert [launcher(launcher=given)[name] for name in OPEN_MPI] == ["core", "core"]

    @pytest.mark.parametrize(
        ("resources", "more"),
        [
            pytest.param(WHOLE, {}, id="limits alone"),
            pytest.param({**WHOLE, "requests": {"cpu": "4000m", "memory": "8Gi"}}, {}, id="equal requests"),
            pytest.param(WHOLE, {"mpiImplementation": "Intel"}, id="Intel MPI"),
        ],
    )
    def test_as_its_mpi_likes_on_exclusive_cpus(self, resources: Resources, more: dict[str, Any]) -> None:
        made = launcher(EXCLUSIVE, worker=of(resources), **more)

        assert made.keys().isdisjoint([*OPEN_MPI, "I_MPI_PIN"])

    @pytest.mark.parametrize(
        "worker",
        [
            pytest.param(of({}), id="nothing is asked for"),
            pytest.param(of({"limits": {"cpu": "1500m", "memory": "1Gi"}}), id="part of a CPU"),
            pytest.param(of({"limits": {"cpu": 4}}), id="any memory"),
            pytest.param(of({**WHOLE, "requests": {"cpu": 2}}), id="fewer CPUs are requested"),
            pytest.param(template(container("mpi", resources=WHOLE), container("proxy")), id="another container"),
            pytest.param(
                template(container("mpi", resources=WHOLE), initContainers=[container("init")]),
                id="an init container",
            ),
        ],
    )
    def test_to_none_where_a_node_would_give_no_exclusive_cpus(self, worker: dict[str, Any]) -> None:
        assert is_unbound(launcher(EXCLUSIVE, worker=worker))

    def test_to_none_on_nodes_that_give_no_exclusive_cpus(self) -> None:
        assert is_unbound(launcher(worker=of(WHOLE)))

    def test_to_none_where_only_the_launcher_shares_its_processors(self) -> None:
        job = {"worker": of(WHOLE), "runLauncherAsWorker": True}

        assert is_unbound(launcher(EXCLUSIVE, **job))
        assert not is_unbound(launcher(EXCLUSIVE, launcher=of(WHOLE, command=["mpirun"]), **job))


class TestTheThreadsOfARank:
    @pytest.mark.parametrize(
        ("resources", "slots", "threads"),
        [
            ({"limits": {"cpu": 4}}, 1, "4"),
            ({"limits": {"cpu": "8"}, "requests": {"cpu": 2}}, 2, "4"),
            ({"requests": {"cpu": "2500m"}}, 1, "2"),
            ({"limits": {"cpu": "500m"}}, 1, "1"),
            ({"limits": {"cpu": 4}}, 8, "1"),
            ({"limits": {"cpu": 0}, "requests": {"cpu": 3}}, 1, "3"),
            ({"limits": {"memory": "1Gi"}}, 1, None),
            ({"limits": {"cpu": 4}}, 0, None),
            ({}, 1, None),
        ],
    )
    def test_are_a_share_of_the_workers_cpus(self, resources: Resources, slots: int, threads: str | None) -> None:
        spec = parsed(worker=of(resources), slotsPerWorker=slots)

        assert variables(worker_template(spec, SETTINGS)).get("MPIRT_THREADS") == threads

    def test_are_not_limited_in_a_launcher_without_ranks(self) -> None:
        given = of(WHOLE, command=["mpirun"])

        assert "MPIRT_THREADS" not in launcher(launcher=given)
        assert launcher(launcher=given, runLauncherAsWorker=True, slotsPerWorker=2)["MPIRT_THREADS"] == "2"
