"""Server-sent events: who watches a channel, what was rendered for them, and how it reaches a slow client. The
functions that render are handed in.
"""
