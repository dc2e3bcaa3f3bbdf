"""Lists, and watches from there."""
