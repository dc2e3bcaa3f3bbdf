"""
mpirt-discover: the hosts that a job may use at this moment, read from live pods.

main.py is the program. discovery.py, options.py and patience.py only compute; job.py asks for pods,
drivers.py looks at the processes around the call, output.py is what the user sees while it takes longer.
"""
