"""The I/O: one loop, what waits on it, and a session's wishes carried out."""
