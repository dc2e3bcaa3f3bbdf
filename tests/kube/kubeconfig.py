"""Kubeconfig files for the cluster's own users."""

from __future__ import annotations

import base64
import json
import tempfile
from pathlib import Path

from tests.kube import layout, pki


def write(path: Path, user: str) -> Path:
    """A kubeconfig for one user, readable by its owner only. JSON is YAML, so no YAML library is needed."""
    authority = base64.b64encode(pki.CA.read_bytes()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "mpirt-kube",
        "clusters": [
            {
                "name": "mpirt-kube",
                "cluster": {"server": layout.API_URL, "certificate-authority-data": authority},
            }
        ],
        "users": [{"name": user, "user": {"token": pki.token(user)}}],
        "contexts": [
            {"name": "mpirt-kube", "context": {"cluster": "mpirt-kube", "user": user, "namespace": "default"}}
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    # Others may be reading the one that is there: at no moment is there none, or half of one.
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f"{path.name}-", delete=False) as fresh:
        fresh.write(json.dumps(config, indent=2) + "\n")
    return Path(fresh.name).replace(path)
