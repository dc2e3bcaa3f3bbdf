"""What programs that are measured find in their environment, and what a pod knows of its API server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks import access
from benchmarks.access import Server
from benchmarks.measure import Unmeasured

SERVER = Server("10.96.0.1", 443, b"CERTIFICATE")


def kubeconfig(**cluster: str) -> Mapping[str, object]:
    return {"clusters": [{"name": "test", "cluster": cluster}]}


class TestEnvironment:
    def test_nothing_of_it_leads_to_a_cluster_or_changes_how_python_starts(self) -> None:
        present = {
            "PATH": "/bin",
            "KUBECONFIG": "/root/config",
            "KUBERNETES_SERVICE_HOST": "192.0.2.1",
            "MPIRT_LOG": "debug",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

        assert access.plain(present) == {"PATH": "/bin"}

    def test_in_a_pod_the_api_server_is_named_and_home_has_no_kubeconfig(self) -> None:
        assert access.in_pod({"PATH": "/bin", "HOME": "/root"}, SERVER, home=Path("/tmp/home")) == {
            "PATH": "/bin",
            "HOME": "/tmp/home",
            "KUBERNETES_SERVICE_HOST": "10.96.0.1",
            "KUBERNETES_SERVICE_PORT": "443",
        }


class TestServer:
    def test_it_is_the_one_of_the_kubeconfig(self) -> None:
        config = kubeconfig(server="https://10.96.0.1:6443", **{"certificate-authority-data": "Q0VSVA=="})

        assert Server.of(config) == Server("10.96.0.1", 6443, b"CERT")

    def test_without_a_port_it_is_that_of_https(self) -> None:
        config = kubeconfig(server="https://api.example.org/", **{"certificate-authority-data": "Q0VSVA=="})

        assert Server.of(config) == Server("api.example.org", 443, b"CERT")

    @pytest.mark.parametrize(
        ("server", "authority"),
        [
            pytest.param("http://localhost:8080", "Q0VSVA==", id="without TLS"),
            pytest.param("https://rancher.example.org/k8s/c-1", "Q0VSVA==", id="below a path"),
            pytest.param("https://api.example.org", "", id="trusted by the system"),
        ],
    )
    def test_what_no_pod_has_is_refused_with_a_way_out(self, server: str, authority: str) -> None:
        config = kubeconfig(server=server, **{"certificate-authority-data": authority})

        with pytest.raises(Unmeasured) as caught:
            Server.of(config)

        assert str(caught.value) == (
            f"no pod reaches its API server as {server} is reached here; measure with: --access kubeconfig"
        )
