"""Totals of every class (capacity, allocated, used, queued, borrowed, lent), and the page Cluster with its banner."""
