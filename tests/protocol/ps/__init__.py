"""`mpirt ps` and STATUS, against a real switchboard and a loopback API server."""
