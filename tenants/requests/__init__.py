"""Requests for quota: filing one, and showing them on pages and by API. Deciding is in decisions, rules that decide
without a person in rules.
"""
