"""What an installation needs besides rows: the rights of the database roles. Used by `manage.py`, not by pages."""
