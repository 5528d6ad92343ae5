"""The page Health, the same as text, and metrics: late tasks, old data, drift, inconsistencies, checks of the catalog."""
