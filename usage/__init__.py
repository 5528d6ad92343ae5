"""What teams use: units by minute and hour, GPU-hours and their cost, waiting times. It reads what `workloads` records
and decides nothing. The order of the rooms is in `.importlinter`.
"""
