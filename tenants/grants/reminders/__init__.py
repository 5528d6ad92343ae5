"""Mails before and after a grant expires."""
