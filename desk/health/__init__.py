"""The page Health, also as text, and metrics: tasks past due, outdated data, drift, inconsistencies, catalog."""
