"""The cluster: its addresses, its faults, the versions that it ran, and waiting."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import date
from itertools import combinations
from typing import Any

import pytest

from testbed.kube import faults, layout, paths
from testbed.kube.compatibility import GreenRun, as_data, from_data, green_run, page, with_run
from testbed.kube.errors import ClusterError
from testbed.kube.wait import Moment, Stopwatch, until
from tests.unit.layers import PROJECT

# What a cluster owns on a machine: its names, addresses and places.
OWNED = """
import json
from testbed.kube import layout, paths
node = layout.Node(1)
print(json.dumps([*map(str, (
    layout.BRIDGE, layout.NETWORK, layout.GATEWAY, layout.POD_NETWORK, layout.SERVICE_NETWORK,
    layout.LOCAL_ADDRESS, layout.FAULT_CHAIN, layout.FORWARD_CHAIN, layout.CGROUP, layout.PROCESS_MARK,
    node.namespace, node.link, node.address, node.pods, node.cgroup, node.root,
    paths.STATE, paths.RUN, paths.KUBECONFIG,
))]))
"""


def test_nothing_listens_on_all_addresses() -> None:
    assert {address for address, _, _ in layout.listening()} == {"10.250.0.1", "127.77.0.1"}


def test_clusters_beside_each_other_have_nothing_in_common() -> None:
    argv, owned = [sys.executable, "-c", OWNED], []
    for number in range(1, len(paths.STATES) + 1):
        environment = {paths.CLUSTER: str(number)}
        said = subprocess.run(argv, check=True, capture_output=True, cwd=PROJECT, env=environment).stdout
        owned.append(set(json.loads(said)))

    assert len(owned) == 3
    assert [first & second for first, second in combinations(owned, 2)] == [set()] * 3


def test_an_unknown_component_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ClusterError) as caught:
        faults.freeze("kubelet")

    assert str(caught.value) == (
        "there is no component 'kubelet'\n"
        "  name one of: etcd, apiserver, controller-manager, scheduler, dns, "
        "kubelet:NODE, containerd:NODE, kube-proxy:NODE, kube-router:NODE"
    )


@pytest.mark.parametrize("name", ["node-99", "node-", "worker-1", "1"])
def test_an_unknown_node_is_refused(name: str) -> None:
    with pytest.raises(ClusterError) as caught:
        faults.node_named(name)

    assert str(caught.value) == f"there is no node '{name}'\n  see: python -m testbed.kube status"


VERSIONS = {"kubernetes": "1.37.2", "containerd": "2.4.2", "etcd": "3.7.3", "runc": "1.1.5", "coredns": "1.15.0"}
NEWEST = GreenRun("1.37.2", "2.4.2", "3.7.3", "1.1.5", {"check": 2800, "e2e": 190}, "2026-11-22")
OLDEST = GreenRun("1.34.4", "2.4.2", "3.7.3", "1.1.5", {"e2e": 25}, "2026-11-20")


def summary(*, red: bool = False) -> dict[str, Any]:
    stages = [{"name": "check", "tests": 2800}, {"name": "cluster", "tests": 0}, {"name": "e2e", "tests": 190}]
    return {"red": red, "stages": stages}


def test_a_green_run_is_kept_with_its_versions_and_numbers() -> None:
    assert green_run(summary(), VERSIONS, date(2026, 11, 22)) == NEWEST


def test_a_red_run_is_refused() -> None:
    with pytest.raises(ClusterError) as refused:
        green_run(summary(red=True), VERSIONS, date(2026, 11, 22))

    assert str(refused.value) == "the last run was red\n  mend it, run make test-full, and record that run"


def test_the_last_run_of_a_minor_version_counts_and_the_newest_comes_first() -> None:
    former = GreenRun("1.37.1", "2.4.1", "3.7.3", "1.1.5", {"e2e": 180}, "2026-10-01")

    assert with_run([former, OLDEST], NEWEST) == with_run([NEWEST], OLDEST) == [NEWEST, OLDEST]


def test_a_run_is_a_row_of_the_page() -> None:
    rows = page([NEWEST, OLDEST]).splitlines()[-2:]

    assert rows == [
        "| 1.37.2 | 2.4.2 | 3.7.3 | 1.1.5 | 2800 in check, 190 in e2e | 2026-11-22 |",
        "| 1.34.4 | 2.4.2 | 3.7.3 | 1.1.5 | 25 in e2e | 2026-11-20 |",
    ]


def test_kept_runs_are_read_back() -> None:
    assert from_data(as_data([NEWEST, OLDEST])) == [NEWEST, OLDEST]


def test_the_error_names_what_was_waited_for_and_what_to_do() -> None:
    with pytest.raises(ClusterError) as caught:
        until(lambda: False, within=0.01, what="the tide", remedy="ask the moon")

    assert str(caught.value) == "waited 0.01 s for the tide\n  ask the moon"


def test_the_error_says_what_there_is_instead_when_time_is_up() -> None:
    levels = iter(range(100))

    with pytest.raises(ClusterError) as caught:
        until(lambda: next(levels) > 100, within=0, what="the tide", instead=lambda: f"a level of {next(levels)}")

    assert re.fullmatch("waited 0 s for the tide; there is a level of [1-9]", str(caught.value))


class TestTheStopwatch:
    @pytest.mark.parametrize(
        ("stalled", "seconds"), [(4.0, 6.0), (10.0, 2.5), (0.0, 10.0)], ids=["at times", "always", "never"]
    )
    def test_counts_no_second_in_which_somebody_waited_for_a_processor(
        self, stalled: float, seconds: float
    ) -> None:
        assert Moment(100.0, 40.0).until(Moment(110.0, 40.0 + stalled)) == seconds

    def test_runs(self) -> None:
        watch = Stopwatch()

        until(lambda: watch.seconds() > 0, within=10, what="the next moment")
