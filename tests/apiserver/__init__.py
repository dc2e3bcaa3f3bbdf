"""
A loopback API server with scripted faults: real sockets, real TLS, real processes behind exec.

    apiserver.world.put(pod("w-0"))
    apiserver.on("get", Status(503, retry_after=1), Silence())     # the next two reads of a pod go wrong
    apiserver.on("exec", Shell(split=1, status=None))              # a real /bin/sh; its output comes byte by byte

Faults are values: faults.py for requests, door.py for what happens before TLS, shell.py and peer.py for
exec. It is a test double for faults that a cluster can't make to order, never the proof that something
works on one.
"""
