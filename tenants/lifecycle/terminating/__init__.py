"""Namespaces that stay in Terminating, and what blocks them."""
