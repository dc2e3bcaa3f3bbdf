"""
mpirt-controller: MPIJob objects in, ordinary Kubernetes objects out.

decisions/decide.py is the way in for whoever watches a cluster: what is known goes in, a plan comes out. The rooms
that it uses compute; only cluster/ talks to an API server.
"""
