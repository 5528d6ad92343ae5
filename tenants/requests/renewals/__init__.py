"""Renewing a grant in one step, which files a request like any other."""
