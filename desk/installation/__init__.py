"""What an installation needs besides rows: the rights of the database roles, for `manage.py`. No page is here."""
