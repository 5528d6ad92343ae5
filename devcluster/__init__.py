"""Development tools: an embedded Kubernetes control plane, the other services that the portal needs, and the commands
of `run.py`.
"""
