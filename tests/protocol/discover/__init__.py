"""mpirt-discover itself, started as a process, against the loopback API server."""
