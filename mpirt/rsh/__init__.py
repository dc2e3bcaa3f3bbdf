"""
One command in one worker pod, for every launcher that knows a remote shell.

    invocation   what a launcher says
    protocol     the bytes to and from the pod
    pod          what is known of the pod
    session      the command, from the first dial to its code
    ports        the I/O

Each uses those above it, and only ports does anything; main.py puts them together, by what settings.py reads.
"""
