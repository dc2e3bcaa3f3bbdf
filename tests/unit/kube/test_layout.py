"""Names and addresses of the test cluster."""

from __future__ import annotations

from tests.kube import layout


def test_nodes_are_numbered_from_one() -> None:
    assert [node.name for node in layout.nodes(3)] == ["node-1", "node-2", "node-3"]


def test_a_node_has_its_own_address_and_pod_network() -> None:
    node = layout.Node(2)

    assert (node.address, str(node.pods)) == ("10.250.0.12", "10.244.2.0/24")


def test_all_nodes_fit_into_the_networks() -> None:
    everyone = layout.nodes(layout.MOST_NODES)

    assert len({node.address for node in everyone}) == layout.MOST_NODES
    assert all(node.pods.subnet_of(layout.POD_NETWORK) for node in everyone)


def test_a_link_name_fits_the_kernels_fifteen_characters() -> None:
    assert all(len(node.link) <= 15 for node in layout.nodes(layout.MOST_NODES))


def test_nothing_listens_on_all_addresses() -> None:
    assert {address for address, _, _ in layout.listening()} == {"10.96.0.1", "10.96.0.10", "127.77.0.1"}
