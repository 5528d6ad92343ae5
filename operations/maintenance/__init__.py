"""Maintenance of nodes: planned with a window, announced, held, drained, changed, verified and released by the worker.

`steps.py` decides what comes next; `node_patch.py` is what is written to a node. Pages and API: desk/maintenance.
"""
