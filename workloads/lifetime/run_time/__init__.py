"""The time limit of a run: warnings before its end, the end itself, and extensions."""
