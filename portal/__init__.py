"""Project wiring and the four leaves: errors, due, hints, live."""
