"""Waiting times of runs: how many were queued, and for how long."""
