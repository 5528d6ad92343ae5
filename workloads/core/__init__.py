"""What every room of this app uses: the role of a user in a team, a workload's row and its last run, what was observed
of a run, and who may do what with it. Nothing here depends on launching, status or the queue.
"""
