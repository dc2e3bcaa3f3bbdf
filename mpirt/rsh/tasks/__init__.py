"""What a launcher's words and the environment ask for, as the task of a session."""
