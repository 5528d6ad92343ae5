"""What all packages of this app use: a user's role in a team, the row of a workload and its last run, the observation
of a run, and who may do what with it. Nothing here depends on launching, status or the queue.
"""
