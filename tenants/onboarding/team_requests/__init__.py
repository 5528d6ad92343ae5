"""Requesting a team with a bundle, and deciding such a request."""
