"""
The Kubernetes API as the fast programs need it: one request, one watch, one upgrade, standard library only.

endpoint.py finds the server, http.py asks it, execs.py opens an exec, watchlink.py keeps listening; all go in
the steps of exchange.py. What stands beside them is parts of these, most of them without I/O.
"""
