"""The priority of a queued run, changed by operators."""
