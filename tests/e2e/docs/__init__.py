"""The pages that people follow word by word, followed."""
