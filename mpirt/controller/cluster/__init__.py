"""
The controller's way to the API server.

link.py is the only file that knows the kubernetes package; writes.py carries out actions, informer.py keeps caches
synced, lease.py says who of several controllers may act. Objects are plain dictionaries throughout: turned into
the package's models five hundred jobs take several times the memory, and nobody here needs them.
"""
