"""Nodes that others than the portal cordoned: rows, and who was told."""
