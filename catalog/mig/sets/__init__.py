"""MIG layouts for several nodes with the same GPUs: which nodes change, to what, and one after which other. Pure."""
