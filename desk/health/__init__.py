"""The page Health, the same as text, and metrics: tasks past due, old data, drift, inconsistencies, catalog checks."""
