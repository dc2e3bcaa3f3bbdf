"""What is looked at next, and what becomes of it."""
