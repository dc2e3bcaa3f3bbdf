"""The bytes to and from a pod: the exec's channels, the greeting, the keeper's frames, the wrapper's script."""
