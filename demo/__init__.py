"""
`make demo`: the controller from its image, an MPI job on it, and where each of its ranks ran.

It takes place in a namespace of its own, with a controller that looks at that namespace alone: other jobs of the
cluster are not touched. Nothing of mpirt is imported: the demo does what a person would do
with kubectl.
"""
