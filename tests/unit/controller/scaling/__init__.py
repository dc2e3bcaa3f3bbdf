"""Which workers a job has, and how they join and leave."""
