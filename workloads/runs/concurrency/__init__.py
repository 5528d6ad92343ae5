"""Runs of one concurrency group: a newer run that CI requests replaces queued and running runs of the group."""
