"""Delegates: who decides for an approver, and when."""
