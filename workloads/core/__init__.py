"""What every room of this app knows: who somebody is in a team, a workload's row and its last run, what was seen of a
run, and who may do what with it. Nothing here knows launching, status or the queue.
"""
