"""When a queued run may start: the calculation, the facts for it, and the same as JSON."""
