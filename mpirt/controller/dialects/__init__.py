"""The dialects: how each kind of job object is read into a JobSpec, and the form of its status."""
