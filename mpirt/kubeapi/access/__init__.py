"""Where the API server is, how to trust it, and which credentials to show."""
