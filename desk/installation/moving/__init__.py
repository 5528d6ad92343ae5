"""The move of the portal to another cluster, and the loss of one: what would be made again, what is lost, the decision
that another cluster is the one of the rows, and what is left after it. `manage.py compare --new-cluster` shows it.
"""
