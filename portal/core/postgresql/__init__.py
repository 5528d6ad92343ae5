"""The database backend of the settings: Django's for PostgreSQL, with a faster loader of times; and what every
connection asks for.
"""
