"""Runs that hold units without using them, as measured: the verdict, who is told of it, and the stop. A notebook's own
answer is in workloads/lifetime/idle.
"""
