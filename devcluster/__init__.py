"""A real control plane on one machine, what the portal needs beside it, and the commands of `run.py` that use them."""
