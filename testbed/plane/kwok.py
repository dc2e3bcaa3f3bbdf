"""
KWOK, which plays the kubelets of nodes that don't exist: its settings, and the words that start it.

It leaves all nodes alone but those with the label of nodes.py, so that it may run beside real ones.
"""

from __future__ import annotations

import json
from pathlib import Path

from testbed.plane import nodes, stages


def write_settings(file: Path) -> None:
    # JSON is YAML, of which the file is a row of documents.
    documents = [_settings(), *stages.all_stages()]
    file.write_text("\n---\n".join(json.dumps(each) for each in documents))


def command(program: Path, kubeconfig: Path, settings: Path) -> list[str]:
    return [
        str(program),
        f"--kubeconfig={kubeconfig}",
        f"--config={settings}",
        "--manage-all-nodes=false",
        f"--manage-nodes-with-label-selector={nodes.SELECTOR}",
        "--node-lease-duration-seconds=40",
        "--cidr=10.128.0.0/10",
    ]


def _settings() -> dict[str, object]:
    parallel = {"podPlayStage": 16, "nodePlayStage": 4, "nodeLease": 4, "podsOnNodeSync": 1}
    options = {f"{what}Parallelism": count for what, count in parallel.items()}
    return {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "options": options}
