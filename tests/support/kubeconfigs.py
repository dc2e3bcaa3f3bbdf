"""The kubeconfigs with which a test starts programs of ours: an administrator's, or a service account's."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from testbed.ground import Namespace
from testbed.kube.kubectl import Kubectl


def kubeconfig(namespace: Namespace, *, account: str = "") -> Path:
    """The administrator's kubeconfig, or one for a service account, with this namespace as its default."""
    path, kubectl = namespace.folder / f"kubeconfig{account}", namespace.ground.kubectl
    if not path.exists():
        config = json.loads(_whole_config(kubectl, kubectl.kubeconfig.read_text()))
        config["contexts"][0]["context"]["namespace"] = namespace.name
        if account:
            config["users"][0]["user"] = {"token": namespace.kubectl("create", "token", account).stdout.strip()}
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))
    return path


@cache
def _whole_config(kubectl: Kubectl, _: str) -> str:
    """The kubeconfig, whose text this is, with all that it names in other files."""
    return kubectl("config", "view", "--raw", "--minify", "--flatten", "--output=json").stdout
