"""The keeper as it is built. What it does is shown by talking to it."""
