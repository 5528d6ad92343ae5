"""What people feel in a real browser."""
