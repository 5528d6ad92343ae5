"""Trials that nobody uses any more are closed automatically."""
