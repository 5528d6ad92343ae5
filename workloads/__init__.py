"""Workloads of teams: launching them, their runs and status, their limits, volumes and credentials, and the way into
a notebook. The order of the rooms is in `.importlinter`.
"""
