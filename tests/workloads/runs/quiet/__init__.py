"""Runs to which nothing happens."""
