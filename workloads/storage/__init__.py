"""Volumes of a team, and how much of its storage quota they use."""
