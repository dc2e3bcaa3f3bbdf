"""A kubeconfig, a credential plugin as it names one, and what that may answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mpirt.fields import FileFields as Fields
from mpirt.kubeapi.access.plugin import ClusterInfo, PluginCredentials, plugin_source

Config = dict[str, Any]

V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"
ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "TMPDIR": "/nowhere"}
HERE = ClusterInfo("https://api.example:6443", None, "", None)
# 2026-01-01T00:00:00Z
NOON = 1767225600.0


def config(*, cluster: Config | None = None, user: Config | None = None, context: Config | None = None) -> Config:
    """A kubeconfig that works, and whatever is given instead."""
    return {
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": "https://api.example", **(cluster or {})}}],
        "users": [{"name": "u", "user": {"token": "t0ken"} if user is None else user}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", **(context or {})}}],
    }


def answer(version: str = V1, **status: Any) -> str:
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status or {"token": "t0ken"}})


def source(folder: Path, environ: dict[str, str] = ENVIRON, **fields: Any) -> PluginCredentials:
    given = {"apiVersion": V1, "command": "./plugin", **fields}
    return plugin_source(Fields(given, file="config", path="users[u].user.exec"), folder, environ, HERE)
