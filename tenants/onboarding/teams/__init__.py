"""A new team with its owner and its namespace."""
