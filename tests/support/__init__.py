"""
What several layers of tests share: the cluster under test, the objects in it, and the programs that are started.

Imports the tools (testbed.kube, testbed.plane, tests.run) and no layer of tests. What one layer needs alone stands
there.
"""
