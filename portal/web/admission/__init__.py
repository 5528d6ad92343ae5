"""Admission control of web: which requests run, wait or are refused when a process is full. It knows no persons and
teams; their requests a minute are counted in accounts/rest/throttles.py.
"""
