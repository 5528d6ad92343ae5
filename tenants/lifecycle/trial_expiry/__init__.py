"""Trials that nobody uses any more are closed by rule."""
