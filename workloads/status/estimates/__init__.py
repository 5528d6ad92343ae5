"""When a run that waits may start: the calculation, the facts for it, and the same as JSON."""
