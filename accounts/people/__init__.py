"""Accounts and their staff roles: look-ups, suspension, and who may administer; pages of administrators are in
tenants/people.
"""
