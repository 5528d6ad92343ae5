"""What a team stores encrypted for its runs (secrets and logins to registries), and the token of a notebook's server.
The Secrets of a run in the cluster are created in `runs`.
"""
