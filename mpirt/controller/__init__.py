"""
mpirt-controller: MPIJob objects in, ordinary Kubernetes objects out.

decide.py is the way in for whoever watches a cluster: what is known goes in, a plan comes out. All of it computes;
only cluster.py and what stands around it talk to an API server.
"""
