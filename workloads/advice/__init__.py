"""Suggested actions for a queued or stuck run: their facts, the actions best first, and the same for pages and API."""
