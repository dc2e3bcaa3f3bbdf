"""The test cluster's command line."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from testbed.kube import cluster, compatibility, faults, layout, paths, preflight, programs
from testbed.kube import status as screen
from testbed.kube.errors import ClusterError
from testbed.kube.programs import modules, neighbours

_SUMMARY = paths.PROJECT / "build/run/summary.json"
_TESTED = paths.PROJECT / "docs/compatibility.json"

_COMPONENT = (
    "COMPONENT is apiserver, etcd, controller-manager, scheduler, dns, kubelet:NODE, containerd:NODE, "
    "kube-proxy:NODE or kube-router:NODE."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """
    A real multi-node Kubernetes on this machine, for tests.

    \b
    Examples:
      python -m testbed.kube up                      two nodes, from nothing or from what runs
      python -m testbed.kube up --kubernetes 1.34    the same with another version
      python -m testbed.kube images openmpi4         build an image and put it on every node
      KUBECONFIG=.kube/config kubectl get nodes
      python -m testbed.kube fault node-lost node-2
      python -m testbed.kube up                      heals what a fault left broken
      python -m testbed.kube down
    """


@cli.command()
@click.option(
    "--nodes", type=click.IntRange(1, layout.MOST_NODES), help="How many nodes; 2, or as many as run now."
)
@click.option(
    "--kubernetes",
    metavar="MINOR",
    envvar="MPIRT_TEST_KUBERNETES",
    help=f"One of {', '.join(modules.minors())}; what runs now, or the newest. Also as MPIRT_TEST_KUBERNETES.",
)
def up(nodes: int | None, kubernetes: str | None) -> None:
    """Start the cluster, or heal the one that runs."""
    cluster.up(nodes, kubernetes)


@cli.command()
def down() -> None:
    """Remove the cluster, and whatever a killed run left of it. Caches stay."""
    cluster.down()


@cli.command()
def status() -> None:
    """Nodes, pods, images, versions and faults, on one screen."""
    click.echo(screen.render())


@cli.command()
@click.argument("names", nargs=-1)
def images(names: tuple[str, ...]) -> None:
    """Build test images that are missing and put them on every node; all of them when no NAME is given."""
    for archive in cluster.load_images(names or None):
        click.echo(f"{archive.name}  {archive.references[0]}")


@cli.command("neighbours")
def build_neighbours() -> None:
    """Build the operators and schedulers that tests run beside mpirt; a quarter of an hour the first time."""
    for one in neighbours.ensure_all():
        click.echo(f"{one.name}  {one.version}")


@cli.command()
@click.option(
    "--kubernetes",
    metavar="MINOR",
    envvar="MPIRT_TEST_KUBERNETES",
    required=True,
    help="The version that the run was made with.",
)
@click.argument("summary", type=click.Path(dir_okay=False, path_type=Path), default=_SUMMARY)
def record(kubernetes: str, summary: Path) -> None:
    """Write the last run of `make test-full` into docs/compatibility.md, by the SUMMARY that it has left."""
    if not summary.exists():
        raise ClusterError(f"there is no {summary}", remedy="run make test-full first")
    known = compatibility.from_data(json.loads(_TESTED.read_text())) if _TESTED.exists() else []
    versions = programs.ensure(kubernetes).versions
    fresh = compatibility.green_run(json.loads(summary.read_text()), versions, datetime.now(UTC).date())
    runs = compatibility.with_run(known, fresh)
    _TESTED.write_text(json.dumps(compatibility.as_data(runs), indent=2) + "\n")
    _TESTED.with_suffix(".md").write_text(compatibility.page(runs))


@cli.group()
def fault() -> None:
    """Break something, or mend it. `up` mends everything."""


@fault.command("node-lost")
@click.argument("node")
def node_lost(node: str) -> None:
    """Cut a node off: its packets are lost, its pods run on."""
    faults.node_lost(faults.node_named(node))


@fault.command("node-back")
@click.argument("node")
def node_back(node: str) -> None:
    """Connect a lost node again."""
    faults.node_back(faults.node_named(node))


@fault.command(epilog=_COMPONENT)
@click.argument("component")
def freeze(component: str) -> None:
    """Stop a component as SIGSTOP does: connections stay open, nothing answers."""
    faults.freeze(component)


@fault.command(epilog=_COMPONENT)
@click.argument("component")
def thaw(component: str) -> None:
    """Let a frozen component go on."""
    faults.thaw(component)


@fault.command(epilog=_COMPONENT)
@click.argument("component")
def kill(component: str) -> None:
    """End a component with -9."""
    faults.kill(component)


@fault.command(epilog=_COMPONENT)
@click.argument("component")
def start(component: str) -> None:
    """Start a component that was killed."""
    faults.start(component)


@fault.command()
@click.option("--from", "source", metavar="ADDRESS", help="Only packets of this address, a pod's for example.")
@click.option("--only-new", is_flag=True, help="Drop new connections, let open ones live.")
def drop(*, source: str | None, only_new: bool) -> None:
    """Drop the packets to and from the API server: its connections become half-open."""
    faults.drop(source=source, only_new=only_new)


@fault.command()
def undrop() -> None:
    """Let the packets through again."""
    faults.undrop()


@fault.command()
@click.argument("pod")
@click.option("--namespace", "-n", default="default", show_default=True)
def oom(pod: str, namespace: str) -> None:
    """Have the OOM killer end the main process of a pod."""
    faults.oom(cluster.kubectl().inside(namespace), pod)


@fault.command("force-delete")
@click.argument("pod")
@click.option("--namespace", "-n", default="default", show_default=True)
def force_delete(pod: str, namespace: str) -> None:
    """Remove a pod's object at once, without waiting for its node."""
    faults.force_delete(cluster.kubectl().inside(namespace), pod)


def main() -> None:
    try:
        cli(standalone_mode=True)
    except ClusterError as error:
        _fail(error)
    except PermissionError as error:
        problem = preflight.root_problem(os.geteuid())
        if problem is None:
            raise
        _fail(ClusterError(f"{problem.what}: {error}", remedy=problem.remedy))


def _fail(error: ClusterError) -> None:
    click.echo(f"error: {error}", err=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
