"""Converts raw Kubernetes JSON to the small record that a mirror row keeps; one module per group of kinds. Pure."""
