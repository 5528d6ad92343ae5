"""A real control plane on one machine, the services that the portal needs, and the commands of `run.py` that use
them.
"""
