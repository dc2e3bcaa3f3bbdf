"""The names that pods get in the cluster's DNS."""

from __future__ import annotations

from typing import Any

from tests.kube import dns

API = "10.96.0.1 kubernetes.default.svc.cluster.local\n"


def endpoints(*addresses: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": "train", "namespace": "team"},
        "subsets": [{"addresses": list(addresses)}],
    }


def test_the_api_server_has_its_name_without_any_service() -> None:
    assert dns.render([]) == API


def test_a_pod_answers_by_its_own_name_and_by_its_services() -> None:
    text = dns.render([endpoints({"ip": "10.244.1.2", "hostname": "train-0"})])

    assert text == (
        f"{API}"
        "10.244.1.2 train-0.train.team.svc.cluster.local\n"
        "10.244.1.2 train.team.svc.cluster.local\n"
    )  # fmt: skip


def test_an_address_without_a_host_name_answers_for_the_service_only() -> None:
    assert dns.render([endpoints({"ip": "10.244.1.2"})]) == f"{API}10.244.1.2 train.team.svc.cluster.local\n"


def test_addresses_that_are_not_ready_have_no_name() -> None:
    item = {
        "metadata": {"name": "train", "namespace": "team"},
        "subsets": [{"notReadyAddresses": [{"ip": "10.1.1.1"}]}],
    }

    assert dns.render([item]) == API


def test_a_service_without_pods_has_no_name() -> None:
    assert dns.render([{"metadata": {"name": "train", "namespace": "team"}}]) == API
