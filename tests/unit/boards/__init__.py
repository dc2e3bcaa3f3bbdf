"""What switchboards and those who ask them have in common."""
