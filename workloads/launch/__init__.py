"""What may be launched and how it is started: shape, class, image and priority of a workload, and the verbs launch,
declare, start, stop, delete. Pages of the form are in `pages`, what runs is in `runs`.
"""
