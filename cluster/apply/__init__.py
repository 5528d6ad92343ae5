"""Applies a row's manifests to the cluster, runs them as a dry run, and computes the status of each applied object."""
