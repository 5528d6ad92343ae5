"""Makes the cluster match a team's namespace and its quota. What is decided is in the rooms below, how objects are sent
is in the app cluster.
"""
