"""How much there is of every class and how much of it is granted, used, queued, borrowed and lent; the page Cluster and
its banner. No class in detail.
"""
