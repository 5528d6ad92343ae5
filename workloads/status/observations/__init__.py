"""Reads of the mirror: what it shows of a run, of its local queue and of the nodes of its class."""
