"""What a neighbour needs in the cluster besides its program: CRDs and webhooks, applied and removed again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from testbed.kube.kubectl import Kubectl, Manifest
from testbed.kube.wait import until

_SERVED_WITHIN = 60.0
_NO_CONVERSION = '--patch={"spec":{"conversion":{"strategy":"None","webhook":null}}}'
_NO_FINALIZERS = '--patch={"metadata":{"finalizers":null}}'


def documents(files: Iterable[Path]) -> list[Manifest]:
    """The objects in YAML files."""
    return [one for file in files for one in yaml.safe_load_all(file.read_text(encoding="utf-8")) if one]


@contextmanager
def passing(
    kubectl: Kubectl, webhooks: str, group: str, crds: Sequence[Manifest], *others: Manifest
) -> Iterator[None]:
    """
    The objects of a neighbour, for the block.

    What would make others wait for it is removed after that, however far it came: its webhook configurations, both
    of that name, and the CRDs of its group, with all their objects.
    """
    try:
        apply(kubectl, crds, *others)
        yield
    finally:
        _remove(kubectl, webhooks, group)


def apply(kubectl: Kubectl, crds: Sequence[Manifest], *others: Manifest) -> None:
    """Apply the objects on the server's side, and wait until the CRDs' kinds are served."""
    # The largest are too large for the annotation of a client-side apply.
    everything = {"apiVersion": "v1", "kind": "List", "items": [*crds, *others]}
    kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=json.dumps(everything))
    names = {crd["metadata"]["name"] for crd in crds}
    # `kubectl wait` fails where a CRD has no conditions yet.
    until(
        lambda: names <= {crd["metadata"]["name"] for crd in kubectl.get("crds") if _is_served(crd)},
        within=_SERVED_WITHIN,
        what=f"the CRDs {', '.join(sorted(names))} to be served",
    )


def _remove(kubectl: Kubectl, webhooks: str, group: str) -> None:
    kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations"
    kubectl("delete", kinds, webhooks, "--ignore-not-found")
    crds = [each["metadata"]["name"] for each in kubectl.get("crds") if each["spec"]["group"] == group]
    # Nobody is left to remove the finalizers, or to convert an object.
    for crd in crds:
        kubectl("patch", "crd", crd, "--type=merge", _NO_CONVERSION)
    for crd in crds:
        _remove_finalizers(kubectl, crd)
    if crds:
        kubectl("delete", "crd", *crds, "--timeout=60s", timeout=90)


def _is_served(crd: Manifest) -> bool:
    rows = crd.get("status", {}).get("conditions") or ()
    return any(row["type"] == "Established" and row["status"] == "True" for row in rows)


def _remove_finalizers(kubectl: Kubectl, crd: str) -> None:
    for each in kubectl.get(crd, "--all-namespaces"):
        metadata = each["metadata"]
        if metadata.get("finalizers"):
            where = [f"--namespace={metadata['namespace']}"] if "namespace" in metadata else []
            kubectl("patch", crd, metadata["name"], *where, "--type=merge", _NO_FINALIZERS, check=False)
