"""What every app stands on: refusals and their codes, due rows, hints, statements as text, state transitions, the
issuer as settings say it; no page, no stream, no app.
"""
