"""`run.py demo`: people, data and scenarios, and the check that follows the main path."""
