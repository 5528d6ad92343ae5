"""Makes the cluster match a team's namespace and its quota. Decisions are in the packages below; sending objects is in
the app cluster.
"""
