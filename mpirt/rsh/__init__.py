"""
One command in one worker pod, for every launcher that knows a remote shell.

    invocation   what a launcher says
    protocol     the bytes to and from the pod
    pod          what is known of the pod
    session      the command, from the first dial to its code
    watches      the loop that waits for everything, and the pods' news
    switchboard  the commands of a launcher in one process

Each uses those above it, and the last two do the I/O. entry.py starts the agent, which starts the switchboard.
"""
