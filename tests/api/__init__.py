"""
Tests of the controller on a real control plane, where KWOK plays the kubelets: see testbed/plane.

What the controller needs of nodes is there. No container runs: what needs a runtime or an MPI is in tests/e2e.
Whether a worker is in use is answered by the proxy on the way to the API server: see apiproxy.py.
"""
