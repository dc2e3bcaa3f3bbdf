"""Builders: pure functions from a JobSpec to Kubernetes objects. No client, no clock, no state."""
