"""The priority of a run that waits, changed by operators."""
