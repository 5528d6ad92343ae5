"""`run.py demo`: people, data and scenarios, and the check that walks the main path."""
