"""`manage.py doctor --preflight`: what in a cluster would prevent an installation of the portal.

`reader` makes all calls; the checks are pure functions of what was read. No database.
"""
