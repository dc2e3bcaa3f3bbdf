"""Tests against the loopback API server: real sockets, real TLS, scripted faults."""
