"""
Kubernetes for the tests: a cluster with nodes, a control plane without, and what other people run beside mpirt.

Owns nothing of mpirt and imports nothing of it: a cluster that used the code under test could hide its mistakes.
"""
