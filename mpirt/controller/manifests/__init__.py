"""Builders: a JobSpec in, the object that Kubernetes gets out. No client, no clock, no state."""
