"""Accounts and their staff roles: look-ups, suspension, and who may administer accounts. The pages of administrators
are in tenants/people.
"""
