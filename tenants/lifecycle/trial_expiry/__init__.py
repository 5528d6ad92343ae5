"""Unused trials are closed automatically."""
