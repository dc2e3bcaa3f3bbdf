"""Which workers a job has: pure functions from the observed state to the next one, and to actions on workers."""
