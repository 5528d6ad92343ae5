"""Deletes what a closed team has in the cluster."""
