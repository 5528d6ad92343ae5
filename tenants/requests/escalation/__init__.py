"""Requests that wait too long for a decision."""
