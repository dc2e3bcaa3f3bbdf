"""
mpirt-discover: the hosts that a job may use at this moment, read from live pods.

main.py is the program. pods.py, discovery.py, selection.py, options.py and patience.py only compute; source.py is
where pods come from, drivers.py and ownjob.py look at the surroundings.
"""
