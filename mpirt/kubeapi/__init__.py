"""
The Kubernetes API as the fast programs need it: one request, one watch, one upgrade, standard library only.

endpoint.py finds the server, http.py asks it, watchlink.py keeps listening to it; what stands beside them is parts
of these, most of them without I/O.
"""
