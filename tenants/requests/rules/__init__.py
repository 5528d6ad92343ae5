"""Rules that decide lines of a request without a person, and the bounds of these rules."""
