"""The time limit of a run: warnings, the stop, and extensions."""
