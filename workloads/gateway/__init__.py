"""The way into a notebook, the log of a run, and who may watch the live stream. The doors process answers these
questions at bare ASGI edges.
"""
