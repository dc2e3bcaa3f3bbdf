"""
The Kubernetes API, standard library only: access (where, and as whom), request (one request, one exec) and watch.

Each package uses those before it. All go in steps that never wait (access/steps.py).
"""
