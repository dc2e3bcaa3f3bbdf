"""
What a switchboard and those who ask it have in common: `mpirt ps` and `mpirt-discover`.

docs/switchboard.md is the contract. protocol.py and podlist.py only compute; places.py and client.py do the I/O.
mpirt-discover imports this every second: standard library only, and little of it.
"""
