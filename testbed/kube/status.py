"""The status screen: what runs, where, in which version, and what is broken on purpose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from testbed.kube import cluster, daemons, faults, images, paths, state
from testbed.kube.kubectl import Kubectl, Manifest, is_ready


def render() -> str:
    """One screen of text. Works on a broken cluster too: that is when people look."""
    present = state.running()
    found = faults.active(present.members)
    sections = [
        f"cluster   {present.nodes} nodes, recipe {present.key}, KUBECONFIG={paths.KUBECONFIG}",
        f"versions  {', '.join(f'{name} {version}' for name, version in cluster.versions().items())}",
        f"faults    {_joined(found, otherwise='none')}",
        f"images    {_joined(_image_words(), otherwise='none is built')}",
        f"logs      {paths.LOGS}",
    ]
    if daemons.pid_of("apiserver") is None or daemons.is_frozen("apiserver"):
        return "\n".join([*sections, "", "The API server does not answer; heal it: python -m testbed.kube up"])
    kubectl = cluster.kubectl()
    return "\n".join([*sections, "", *_nodes(kubectl), "", *_pods(kubectl)])


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as aligned columns, the first row being the heading."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows]  # fmt: skip


def _nodes(kubectl: Kubectl) -> list[str]:
    rows = [["NODE", "STATE", "ADDRESS"]]
    for node in kubectl.get("nodes"):
        state = "Ready" if is_ready(node) else "NotReady"
        rows.append([node["metadata"]["name"], state, node["status"]["addresses"][0]["address"]])
    return table(rows)


def _pods(kubectl: Kubectl) -> list[str]:
    rows = [["NAMESPACE", "POD", "PHASE", "NODE", "ADDRESS"]]
    rows += [_pod_row(pod) for pod in kubectl.get("pods", "--all-namespaces")]
    return table(rows) if len(rows) > 1 else ["no pods"]


def _pod_row(pod: Manifest) -> list[str]:
    phase = "Terminating" if "deletionTimestamp" in pod["metadata"] else pod["status"]["phase"]
    return [
        pod["metadata"]["namespace"],
        pod["metadata"]["name"],
        phase,
        pod["spec"].get("nodeName", "-"),
        pod["status"].get("podIP", "-"),
    ]


def _image_words() -> Iterable[str]:
    return (f"{row.name} {row.size / 1e6:.0f} MB" for row in images.listing() if row.is_cached)


def _joined(words: Iterable[str], *, otherwise: str) -> str:
    return ", ".join(words) or otherwise
