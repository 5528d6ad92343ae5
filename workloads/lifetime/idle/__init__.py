"""Idle notebooks: the worker checks their servers, warns users, and stops idle notebooks."""
