"""Kubeconfig files for a control plane's users."""

from __future__ import annotations

import base64
import json
import tempfile
from pathlib import Path

from testbed.kube.commandlines import Site


def write(path: Path, site: Site, user: str, *, token: str = "", url: str = "") -> Path:
    """
    A kubeconfig for one user, readable by its owner only. JSON is YAML, so no YAML library is needed.

    Without `token` it is the one that the user was given with the plane's secrets. `url` leads to the API server
    by another way than the straight one.
    """
    authority = base64.b64encode(site.secrets.ca.read_bytes()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "mpirt-kube",
        "clusters": [
            {
                "name": "mpirt-kube",
                "cluster": {"server": url or site.url, "certificate-authority-data": authority},
            }
        ],
        "users": [{"name": user, "user": {"token": token or site.secrets.token(user)}}],
        "contexts": [
            {"name": "mpirt-kube", "context": {"cluster": "mpirt-kube", "user": user, "namespace": "default"}}
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    # Others may be reading the one that is there: at no moment is there none, or half of one.
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f"{path.name}-", delete=False) as fresh:
        fresh.write(json.dumps(config, indent=2) + "\n")
    return Path(fresh.name).replace(path)
