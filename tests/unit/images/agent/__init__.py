"""The agent's files as they are built."""
