"""Accounts as administrators see and change them: roles, suspension, the classes that an approver decides. The account
itself and signing in are in the app accounts.
"""
