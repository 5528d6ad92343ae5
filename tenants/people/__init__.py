"""Accounts as administrators see and change them: roles, suspension, classes to decide. The account itself and signing
in are in the app accounts.
"""
