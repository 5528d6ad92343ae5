"""A real control plane on one machine, and the commands of `run.py` that use it."""
