"""The controller's core, handed values."""
