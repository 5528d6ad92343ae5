"""Nodes for staff: the list, one node in full, who holds its devices, and MIG layouts as drawings."""
