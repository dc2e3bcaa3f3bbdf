"""mpirt-controller as a process, against an API server that goes away, refuses and forgets."""
