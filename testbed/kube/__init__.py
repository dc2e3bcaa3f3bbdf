"""
A real multi-node Kubernetes on one Debian machine, with faults on demand.

The command line is `python -m testbed.kube`; the pytest fixtures on top of it are in tests/e2e/conftest.py.
Nothing here knows mpirt: any project could be tested on this cluster.
"""
