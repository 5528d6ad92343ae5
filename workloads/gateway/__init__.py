"""Access to a notebook, the log of a run, and who may watch the live stream. The doors process serves these as bare
ASGI edges.
"""
