"""What a team keeps sealed for its runs (secrets and logins to registries), and the token of a notebook's server. The
Secrets of a run in the cluster are made in `runs`.
"""
