"""The values of the controller: a job's spec and status, the actions for it, and their outcomes."""
