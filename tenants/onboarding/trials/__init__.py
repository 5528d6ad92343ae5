"""Trials: a team of the person's own with one unit for some hours, once per person."""
