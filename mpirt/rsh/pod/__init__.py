"""What is known of a pod, and what it adds up to: its name, its state, its silence."""
