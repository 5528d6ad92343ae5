"""Base modules of every app: refusals and their codes, due rows, hints, SQL written as text, state transitions, when a
connection counts as dead, and the single sign-on configuration. They import no page, no stream and no app.
"""
