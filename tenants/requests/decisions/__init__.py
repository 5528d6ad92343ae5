"""Deciding the lines of a request: what an approver sees, what a decision contains and what it changes."""
