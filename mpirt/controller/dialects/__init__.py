"""What is particular to a kind of job object: how it is read into a JobSpec, and the shape of its status."""
