"""A credential plugin as a kubeconfig names it, and what it may answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mpirt.fields import FileFields as Fields
from mpirt.kubeapi.access.plugin import ClusterInfo, PluginCredentials, plugin_source

V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"
ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "TMPDIR": "/nowhere"}
HERE = ClusterInfo("https://api.example:6443", None, "", None)
# 2026-01-01T00:00:00Z
NOON = 1767225600.0


def answer(version: str = V1, **status: Any) -> str:
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status or {"token": "t0ken"}})


def source(folder: Path, environ: dict[str, str] = ENVIRON, **fields: Any) -> PluginCredentials:
    given = {"apiVersion": V1, "command": "./plugin", **fields}
    return plugin_source(Fields(given, file="config", path="users[u].user.exec"), folder, environ, HERE)
