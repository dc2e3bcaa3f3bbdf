"""The watch that many sessions share, against a loopback API server."""
