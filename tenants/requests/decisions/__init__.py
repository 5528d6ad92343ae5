"""Deciding the lines of a request: what an approver sees, says and brings about."""
