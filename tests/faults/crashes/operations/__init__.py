"""What the operations are, by subject."""
