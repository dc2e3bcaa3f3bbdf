"""The observed state: objects from the API server, read into values."""
