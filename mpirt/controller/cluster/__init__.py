"""
The controller's access to the API server.

link.py is the only file that imports urllib3; writes.py carries out actions, informer.py keeps the caches synced,
lease.py knows whether this replica may write. Objects are plain dictionaries throughout: as models of the
kubernetes package, five hundred jobs would take several times the memory, and nothing here needs models.
"""
