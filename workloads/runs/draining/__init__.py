"""Moves a run off its node: Kueue gives its units back, and admits it again where it may start.

Who asks for it, and why, is decided above (operations). Only runs in a queue can be moved.
"""
