"""What may be launched and how it is started: kind, class, image and priority of a workload, and the actions launch,
declare, start, stop and delete. Pages of the form are in `pages`; running workloads are handled in `runs`.
"""
