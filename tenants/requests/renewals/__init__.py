"""Renewing a grant in one click, which is a request like any other."""
