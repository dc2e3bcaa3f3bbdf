"""
Tests of the controller on a real control plane, where KWOK plays the kubelets: see tests/plane.

What the controller needs of nodes is there. No container runs: what needs a runtime, exec or an MPI is in
tests/e2e.
"""
