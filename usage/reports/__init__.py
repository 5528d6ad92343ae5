"""The usage report of a month: who held which units for how long, and what it cost. For one team and for all, as page,
in the API and as CSV. Only allocation intervals count. Not here: the use that was observed (`samples`), and quota.
"""
