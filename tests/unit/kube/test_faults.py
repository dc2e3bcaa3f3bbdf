"""What can be broken, by name."""

from __future__ import annotations

import pytest

from testbed.kube import faults
from testbed.kube.errors import ClusterError


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
