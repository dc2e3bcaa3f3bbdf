"""Where the test cluster can be reached from, and what clusters beside each other have in common: nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import combinations

from testbed.kube import layout, paths
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
    owned = [
        set(
            json.loads(
                subprocess.run(
                    [sys.executable, "-c", OWNED],
                    check=True,
                    capture_output=True,
                    cwd=PROJECT,
                    env={paths.CLUSTER: str(number)},
                ).stdout
            )
        )
        for number in range(1, len(paths.STATES) + 1)
    ]

    assert len(owned) == 3
    assert [first & second for first, second in combinations(owned, 2)] == [set()] * 3
