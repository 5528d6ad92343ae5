"""How long the rows of each table are kept: one table of all kinds, what `manage.py retention` shows of it, and the
archive of rows before they are deleted. Not here: deletions that a room makes of its own rows; the table names them.
"""
