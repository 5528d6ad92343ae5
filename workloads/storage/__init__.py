"""Volumes of a team, and what they take of its storage."""
