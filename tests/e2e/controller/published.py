"""
A CRD with the shape that mpi-operator publishes, made out of ours and of what the cluster says a pod is.

As in kubeflow/mpi-operator, manifests/base/kubeflow.org_mpijobs.yaml: v2beta1 alone, no scale subresource,
replicas by any name and without a default, pod templates with a schema of their own, so that what it doesn't know
is cut off; and nothing of what only v1 has or only we have. The status is the same in both.
"""

from __future__ import annotations

import json
from typing import Any

import yaml

from tests.kube.kubectl import Kubectl, Manifest
from tests.kube.paths import PROJECT

_POD_SPEC = "io.k8s.api.core.v1.PodSpec"
_OURS_ALONE = ("elastic", "mainContainer", "cleanPodPolicy")
_KEPT = ("type", "format", "enum", "required")
_FREE = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}


def crd(kubectl: Kubectl) -> Manifest:
    """The object."""
    found: Manifest = yaml.safe_load((PROJECT / "crds/mpijobs.kubeflow.org.yaml").read_text(encoding="utf-8"))
    [version] = [each for each in found["spec"]["versions"] if each["name"] == "v2beta1"]
    found["spec"]["versions"] = [version]
    found["spec"]["names"].pop("shortNames")
    version["subresources"].pop("scale")
    version.pop("additionalPrinterColumns")
    fields = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    for name in _OURS_ALONE:
        fields.pop(name)
    fields["mpiReplicaSpecs"] = {"type": "object", "additionalProperties": _replica(_pod_spec(kubectl))}
    return found


def _replica(pod_spec: Manifest) -> Manifest:
    texts = {"type": "object", "additionalProperties": {"type": "string"}}
    metadata = {"type": "object", "properties": {"labels": texts, "annotations": texts}}
    template = {"type": "object", "properties": {"metadata": metadata, "spec": pod_spec}}
    return {
        "type": "object",
        "properties": {
            "replicas": {"type": "integer", "format": "int32"},
            "restartPolicy": {"type": "string"},
            "template": template,
        },
    }


def _pod_spec(kubectl: Kubectl) -> Manifest:
    """The schema of a pod's spec, as this API server tells it."""
    definitions = json.loads(kubectl("get", "--raw", "/openapi/v2").stdout)["definitions"]
    return _written_out(definitions[_POD_SPEC], definitions)


def _written_out(schema: Manifest, definitions: Manifest) -> Manifest:
    """With what it refers to in the place of the references, and without words."""
    while "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if schema.get("format") == "int-or-string" or "Quantity" in schema.get("description", "")[:20]:
        return dict(_FREE)
    kept: dict[str, Any] = {name: schema[name] for name in _KEPT if name in schema}
    if "properties" in schema:
        kept["properties"] = {name: _written_out(each, definitions) for name, each in schema["properties"].items()}
    for name in ("items", "additionalProperties"):
        if name in schema:
            kept[name] = _written_out(schema[name], definitions)
    return {"type": "object", **kept}
