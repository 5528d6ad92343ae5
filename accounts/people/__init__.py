"""Accounts and their staff roles: look-ups, suspension, and who may administer accounts. The administrators' pages are
in tenants/people.
"""
