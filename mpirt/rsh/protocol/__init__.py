"""The bytes to and from a pod before and while a keeper holds a command: the greeting and the keeper's frames."""
