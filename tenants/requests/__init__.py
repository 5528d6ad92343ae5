"""Asking for quota: filing a request, and the requests as pages and API show them. Deciding is in decisions, rules that
decide without a person in rules.
"""
