"""The kubeconfig of a loopback API server. Owns: its form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path


def write(folder: Path, url: str, user: Mapping[str, object], *, ca: str = "", namespace: str = "ml") -> Path:
    """Write it into a folder, with ca.crt beside it if the server has one; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster = {"server": url}
    if ca:
        (folder / "ca.crt").write_text(ca, encoding="utf-8")
        cluster["certificate-authority"] = "ca.crt"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "loop", "cluster": cluster}],
        "users": [{"name": "me", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "loop", "user": "me", "namespace": namespace}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path
