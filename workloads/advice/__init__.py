"""Suggested actions for a queued or stuck run: the facts behind them, the actions (best first), and their form for
pages and API.
"""
