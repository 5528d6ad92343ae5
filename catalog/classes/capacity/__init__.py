"""Capacity: the units of each class that nodes have and that are in use, and what a unit counts as in GPUs."""
