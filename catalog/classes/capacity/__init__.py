"""What the nodes have of each class and what is in use, from the mirror."""
