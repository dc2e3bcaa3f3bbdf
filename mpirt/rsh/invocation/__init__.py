"""What a launcher says when it calls us, as values: its words, its options, what it wants told."""
