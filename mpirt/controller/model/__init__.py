"""The values that all else here is about: what a job is, what may be done for it, what came of that."""
