"""What `mpirt scale` is asked for, what it asks for, and what it says of workers."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.cli.scale.progress import (
    Change,
    How,
    Outcome,
    Steps,
    aims_at,
    end_of,
    has_workers,
    is_taken_up,
    outcome_of,
    read_change,
    refusal,
    scaler,
)
from mpirt.errors import UsageError


class TestTheWords:
    @pytest.mark.parametrize(
        ("words", "removed", "change"),
        [
            ("+2", (), Change(How.ADD, 2)),
            ("-1", (), Change(How.REMOVE, 1)),
            ("12", (), Change(How.SET, 12)),
            (None, ("w-1", "w-3", "w-1"), Change(How.REMOVE, pods=("w-1", "w-3"))),
        ],
    )
    def test_say_how_the_workers_change(self, words: str | None, removed: tuple[str, ...], change: Change) -> None:
        assert read_change(words, removed) == change

    @pytest.mark.parametrize(
        ("words", "removed", "problem"),
        [
            (None, (), "how many workers? expected +2, -1, 5 or --remove POD, got nothing"),
            ("two", (), "how many workers? expected +2, -1, 5 or --remove POD, got 'two'"),
            ("--2", (), "how many workers? expected +2, -1, 5 or --remove POD, got '--2'"),
            ("1234567", (), "how many workers? expected +2, -1, 5 or --remove POD, got '1234567'"),
            ("-0", (), "expected at least one worker, got -0"),
            ("-1", ("w-1",), "-1 and --remove are given; choose one of them"),
        ],
    )
    def test_that_mean_nothing_are_refused(
        self, words: str | None, removed: tuple[str, ...], problem: str
    ) -> None:
        with pytest.raises(UsageError) as caught:
            read_change(words, removed)

        assert str(caught.value) == problem

    @pytest.mark.parametrize(
        ("change", "left"),
        [
            (Change(How.ADD, 2), 6),
            (Change(How.REMOVE, 1), 3),
            (Change(How.REMOVE, pods=("a", "b")), 2),
            (Change(How.SET, 1), 1),
        ],
    )
    def test_say_how_many_are_left_of_four(self, change: Change, left: int) -> None:
        assert change.of(4) == left


class TestTheObject:
    def test_more_workers_are_a_scale_out_with_a_name_of_its_own(self) -> None:
        assert scaler(Change(How.ADD, 2), "train", timeout=60, force=False) == {
            "apiVersion": "kai.alibabacloud.com/v1alpha1",
            "kind": "ScaleOut",
            "metadata": {"generateName": "train-scaleout-"},
            "spec": {"selector": {"name": "train"}, "toAdd": {"count": 2}, "timeout": 60},
        }

    def test_certain_workers_are_a_scale_in_that_names_them(self) -> None:
        made = scaler(Change(How.REMOVE, pods=("w-1",)), "train", timeout=5, force=True)

        assert made["metadata"] == {
            "generateName": "train-scalein-",
            "annotations": {"mpirt.dev/force": "true"},
        }
        assert made["spec"] == {"selector": {"name": "train"}, "toDelete": {"podNames": ["w-1"]}, "timeout": 5}


def pod(name: str, *, ready: bool = False, phase: str = "Pending", **metadata: Any) -> dict[str, Any]:
    rows = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {"metadata": {"name": name, **metadata}, "status": {"phase": phase, "conditions": rows}}


class TestTheWayOfAWorker:
    def test_in_and_out_is_told_a_line_a_step(self) -> None:
        steps = Steps([pod("w-0", ready=True)])
        leaving: dict[str, Any] = {"annotations": {"mpirt.dev/draining": "ScaleIn"}}
        waiting = pod("w-1")
        waiting["status"]["conditions"].append({"type": "PodScheduled", "status": "False", "message": "0/2 nodes"})

        told = [
            list(steps.news(pods))
            for pods in (
                [pod("w-0", ready=True)],
                [pod("w-0", ready=True), waiting],
                [pod("w-0", ready=True), pod("w-1")],
                [pod("w-0", ready=True, **leaving), pod("w-1", ready=True)],
                [pod("w-0", ready=True, deletionTimestamp="now"), pod("w-1", phase="Failed")],
                [],
            )
        ]

        assert told == [
            [],
            ["w-1: waits for a node: 0/2 nodes"],
            ["w-1: starts"],
            ["w-0: is no host any more; waits until no command runs in it", "w-1: is Ready"],
            ["w-0: is being deleted", "w-1: has ended: Failed"],
            ["w-0: gone", "w-1: gone"],
        ]

    def test_in_does_not_mention_leaving_though_the_worker_carries_that_annotation(self) -> None:
        steps = Steps([])
        annotated: dict[str, Any] = {"annotations": {"mpirt.dev/draining": "ScaleOut"}}

        told = [
            list(steps.news([one]))
            for one in (pod("w-1", **annotated), pod("w-1", ready=True, **annotated), pod("w-1", ready=True))
        ]

        assert told == [["w-1: starts"], ["w-1: is Ready"], []]
        assert list(steps.news([pod("w-1", ready=True, **annotated)])) == [
            "w-1: is no host any more; waits until no command runs in it"
        ]

    @pytest.mark.parametrize(
        ("pods", "count", "done"),
        [
            ([pod("w-0", ready=True), pod("w-1", ready=True)], 2, True),
            ([pod("w-0", ready=True), pod("w-1")], 2, False),
            ([pod("w-0", ready=True)], 2, False),
            ([pod("w-0", ready=True), pod("w-1", ready=True, deletionTimestamp="now")], 2, False),
        ],
    )
    def test_a_number_of_workers_is_reached_when_all_are_ready(
        self, pods: list[dict[str, Any]], count: int, *, done: bool
    ) -> None:
        assert has_workers(pods, count) is done


def told(phase: str, *conditions: tuple[str, str]) -> dict[str, Any]:
    rows = [{"type": kind, "status": "True", "message": message} for kind, message in conditions]
    return {"status": {"phase": phase, "conditions": rows}}


class TestWhatTheStatusSays:
    @pytest.mark.parametrize(
        ("body", "taken_up", "outcome"),
        [
            ({}, False, None),
            (told("Scaling", ("Scaling", "w-2 is to join")), True, None),
            (
                told("ScaleSucceeded", ("Scaling", "w-2 is to join"), ("ScaleSucceeded", "added w-2")),
                True,
                Outcome(succeeded=True, message="added w-2"),
            ),
            (told("ScaleFailed"), False, Outcome(succeeded=False, message="ScaleFailed")),
        ],
    )
    def test_of_a_scale_in_or_scale_out(
        self, body: dict[str, Any], outcome: Outcome | None, *, taken_up: bool
    ) -> None:
        assert (is_taken_up(body), outcome_of(body)) == (taken_up, outcome)

    @pytest.mark.parametrize(
        ("scaling", "aims"),
        [(None, False), ({"replicas": 2}, False), ({"replicas": 3}, True), ({"replicas": 2, "change": {}}, True)],
    )
    def test_of_a_job_whose_workers_are_to_be_three(self, scaling: dict[str, Any] | None, *, aims: bool) -> None:
        assert aims_at({"status": {"scaling": scaling}}, 3) is aims

    @pytest.mark.parametrize(
        ("spec", "workers", "why"),
        [
            ({}, 0, "0 workers are fewer than its minReplicas=1"),
            ({}, 100, ""),
            ({"elastic": {"minReplicas": 2, "maxReplicas": 4}}, 1, "1 workers are fewer than its minReplicas=2"),
            ({"elastic": {"minReplicas": 2, "maxReplicas": 4}}, 4, ""),
            (
                {"etReplicaSpecs": {"worker": {"maxReplicas": 3}}},
                4,
                "4 workers are more than its maxReplicas=3",
            ),
        ],
    )
    def test_of_a_job_that_has_limits(self, spec: dict[str, Any], workers: int, why: str) -> None:
        assert refusal({"spec": spec}, workers) == why

    @pytest.mark.parametrize(
        ("body", "end"),
        [
            ({}, ""),
            (told("Running", ("Created", ""), ("Running", "")), ""),
            (told("", ("Created", ""), ("Failed", "")), "Failed"),
            (told("", ("Suspended", "")), "Suspended"),
        ],
    )
    def test_of_a_job_that_may_be_over(self, body: dict[str, Any], end: str) -> None:
        assert end_of(body) == end
