"""Runs of one concurrency group: a newer one, asked for by CI, takes the place of what runs or waits."""
