"""Maintenance of nodes as pages and API, for staff: what a plan would affect, its steps, and its controls. The rows and
the worker's part are in operations/maintenance.
"""
