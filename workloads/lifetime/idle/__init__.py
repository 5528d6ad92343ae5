"""Idle notebooks: the servers are checked, users are warned, and idle notebooks are stopped."""
