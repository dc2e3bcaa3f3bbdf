"""
mpirt-controller: MPIJob objects in, ordinary Kubernetes objects out.

decisions/decide.py is the entry point: it turns everything known about a job into a plan. The packages that it
uses only compute; only cluster/ talks to an API server.
"""
