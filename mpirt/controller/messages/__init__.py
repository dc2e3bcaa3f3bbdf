"""What is said of a job: conditions, causes, events."""
