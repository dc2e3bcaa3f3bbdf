"""The benchmarks' command line: one command for each, and the one place that turns errors into a line."""

from __future__ import annotations

import sys

import click

from benchmarks.controller import controller
from benchmarks.deaths import deaths
from benchmarks.elastic import elastic
from benchmarks.fleet import fleet
from benchmarks.frame import Unmeasured
from benchmarks.outages import outages
from benchmarks.ranks import ranks
from benchmarks.scale import scale
from benchmarks.ssh import ssh
from testbed.kube.errors import ClusterError


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    commands=[fleet, deaths, outages, elastic, controller, ranks, scale, ssh],
)
def cli() -> None:
    """
    Comparisons with what people use today, on the test cluster.

    The cluster is started when none runs (root), or that of MPIRT_TEST_KUBECONFIG is used. Everything happens in
    namespaces that are removed at the end. Figures are printed and nothing is asserted: the exit code is 1 only
    when something could not be measured.

    \b
    Examples:
      python -m benchmarks fleet                    commands and discovery beside kubectl
      python -m benchmarks fleet --json | tail -n1  the ratios
      python -m benchmarks deaths                   how commands end when pods, nodes and the API server die
      python -m benchmarks outages                  which jobs survive when API server and nodes are away
      python -m benchmarks elastic                  Horovod whose workers die or leave
      python -m benchmarks controller               what the controller costs
      python -m benchmarks controller --beside mpi-operator
      python -m benchmarks ranks                    how fast ranks are that share a node
      python -m benchmarks scale --workers 1000     what a job of thousands of workers costs
      python -m benchmarks ssh                      sessions beside those of ssh
    """


def main() -> None:
    try:
        cli(prog_name="python -m benchmarks")
    except (Unmeasured, ClusterError, OSError) as error:
        click.echo(f"not measured: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
