"""Trials: a team of one's own with one unit for some hours, once for each person."""
