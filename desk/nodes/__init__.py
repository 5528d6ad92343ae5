"""Nodes for staff: the list, the page of one node, the pods on its devices, and MIG layouts as drawings."""
