"""
`make demo`: the controller from its image, an MPI job on it, and where each of its ranks ran.

It takes place in a namespace of its own, with a controller that looks at that namespace alone: nobody else's jobs
are touched, on a cluster that others use, too. Nothing of mpirt is imported: the demo does what a person would do
with kubectl.
"""
