"""Runs of one concurrency group: a newer run, requested by CI, replaces queued and running ones."""
