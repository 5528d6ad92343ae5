"""Asking for a team with a bundle, and deciding that."""
