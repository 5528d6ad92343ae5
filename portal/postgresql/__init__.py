"""Django's PostgreSQL, with one thing less on the way."""
