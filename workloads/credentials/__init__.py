"""What a team keeps sealed for its runs, secrets and logins to registries, and the token of a notebook's server. Who
uses a secret in a run is asked in `runs`.
"""
