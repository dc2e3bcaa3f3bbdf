"""What is reported about a job: conditions, causes, events."""
