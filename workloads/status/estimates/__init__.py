"""When a queued run may start: the calculation, its input facts, and the result as JSON."""
