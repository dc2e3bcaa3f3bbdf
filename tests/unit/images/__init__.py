"""What the images' own programs do."""
