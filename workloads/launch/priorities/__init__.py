"""Which priority a launch may have, and how much of a class one team may have as production work. Moving a run that
waits is in `runs`.
"""
