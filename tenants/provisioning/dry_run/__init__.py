"""Computes by dry run what the pending lines of a request would change in the cluster."""
