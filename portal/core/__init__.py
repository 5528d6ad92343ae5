"""Base modules of every app: refusals and their codes, due rows, hints, SQL written as text, state transitions, and
the single sign-on configuration. They import no page, no stream and no app.
"""
