"""The page Health, also as text, and metrics: tasks past due, outdated data, drift, inconsistencies, catalog. Also the
checks of a cluster before an installation.
"""
