"""Parsing, rate limits, idempotent repetition and responses of all API calls. This package knows no verbs and no
model except KeptAnswer.
"""
