"""Which priority a launch may have, and how many units of a class a team may use with production priority. Changing the
priority of a queued run is in `runs`.
"""
