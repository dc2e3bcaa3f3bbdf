"""
The Kubernetes API as the fast programs need it: one request, one watch, one upgrade, standard library only.

access/endpoint.py finds the server, request/api.py asks it, request/execs.py opens an exec, watch/link.py keeps
listening; all go in the steps of access/steps.py. What stands beside them is parts of these.
"""
