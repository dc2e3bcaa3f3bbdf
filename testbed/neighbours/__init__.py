"""
Operators and schedulers that people run beside mpirt: real ones, as processes of the test.

A neighbour is started with an administrator's kubeconfig, acts on the namespaces that it is given, and ends with
the block. What it needs in the cluster is applied first, from the manifests of the same version.
"""
