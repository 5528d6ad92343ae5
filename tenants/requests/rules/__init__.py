"""Rules that decide lines of a request without a person, and their bounds."""
