"""Reads of the mirror: what is there of a run, of its local queue and of the nodes of its class."""
