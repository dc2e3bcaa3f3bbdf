"""
One command in one worker pod, for every launcher that knows a remote shell.

The core has no I/O: argv.py and launchers.py read what a launcher says; wrapper.py and script.py are the pod's
side, markers.py reads its answers; channels.py is the exec protocol; session.py the state machine, with
liveness.py its clock, evidence.py its judge and retry.py its patience. transport.py and relay.py do what the
session asks for.
"""
