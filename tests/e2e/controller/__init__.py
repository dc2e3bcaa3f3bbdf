"""The controller, on a real cluster."""
