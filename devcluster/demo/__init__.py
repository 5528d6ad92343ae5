"""`run.py demo`: users, data and scenarios, and the automatic check of the portal's main path (`--check`)."""
