"""What is known: objects as the API server has them, read into values."""
