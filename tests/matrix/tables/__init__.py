"""What each route answers to each role, as tables."""
