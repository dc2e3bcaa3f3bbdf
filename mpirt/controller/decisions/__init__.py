"""What is decided: what is known goes in, a plan comes out."""
