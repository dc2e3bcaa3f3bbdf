"""What deploy/ installs: as little power as can be, and the same in each of its forms."""

from __future__ import annotations

from typing import Any

import pytest

from tests.promises import promise
from tests.unit import yamlfiles
from tests.unit.layers import PROJECT

DEPLOY = PROJECT / "deploy"

# https://kubectl.docs.kubernetes.io/references/kustomize/kustomization/, and what version 5 warns of.
DEPRECATED = {"bases", "commonLabels", "imageTags", "patchesJson6902", "patchesStrategicMerge", "vars"}


def documents(file: str) -> list[dict[str, Any]]:
    return yamlfiles.parsed((DEPLOY / file).read_text(encoding="utf-8"))


def pod() -> dict[str, Any]:
    [deployment] = documents("base/deployment.yaml")
    found: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return found


class TestThePod:
    """Kubernetes' own names for the rules: https://kubernetes.io/docs/concepts/security/pod-security-standards/"""

    @promise("The controller's pod meets the restricted profile of Pod Security.", of="safety")
    def test_the_deployment_keeps_the_rules_of_the_restricted_profile(self) -> None:
        spec = pod()
        [container] = spec["containers"]

        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] > 0
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }

    def test_the_deployment_takes_nothing_of_its_node(self) -> None:
        spec = pod()
        [container] = spec["containers"]

        assert not {"hostNetwork", "hostPID", "hostIPC", "volumes", "initContainers"} & spec.keys()
        assert [port for port in container["ports"] if "hostPort" in port] == []

    def test_the_deployment_has_requests_and_limits(self) -> None:
        [container] = pod()["containers"]

        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]

    def test_its_namespace_asks_for_that_profile(self) -> None:
        [namespace] = documents("cluster/namespace.yaml")

        assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"

    def test_the_deployment_runs_as_the_user_of_its_image(self) -> None:
        file = (PROJECT / "images/controller/Dockerfile").read_text(encoding="utf-8")
        who = pod()["securityContext"]

        assert f"\nUSER {who['runAsUser']}:{who['runAsGroup']}\n" in file


class TestTheForms:
    def test_permissions_for_one_namespace_are_those_for_all(self) -> None:
        assert documents("namespaced/role.yaml")[0]["rules"] == documents("cluster/cluster-role.yaml")[0]["rules"]

    @pytest.mark.parametrize("folder", ["crds", "deploy", "examples"])
    def test_no_kustomization_has_a_field_that_kubectl_warns_of(self, folder: str) -> None:
        files = sorted((PROJECT / folder).rglob("kustomization.yaml"))
        fields = {field for file in files for field in yamlfiles.read(file)}

        assert {"apiVersion", "kind", "resources"} <= fields
        assert fields & DEPRECATED == set()

    def test_both_images_are_named_in_one_file(self) -> None:
        text = (DEPLOY / "base/deployment.yaml").read_text(encoding="utf-8")

        assert text.count("mpirt/controller:latest") == text.count("mpirt/runtime:latest") == 1

    @promise("No rule of the controller's Role has a wildcard.", of="safety", no_cluster="the manifests are read")
    def test_no_rule_has_a_wildcard(self) -> None:
        rules = [
            rule
            for file in ("namespaced/role.yaml", "cluster/cluster-role.yaml", "base/account.yaml")
            for document in documents(file)
            for rule in document.get("rules", [])
        ]

        assert [rule for rule in rules if "*" in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}] == []
