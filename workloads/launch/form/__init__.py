"""The launch form: its choices, initial values, links and preview."""
