"""Server-sent events: the viewers of a channel, the fragments rendered for them, and sending to slow clients. The
caller passes in the functions that render.
"""
