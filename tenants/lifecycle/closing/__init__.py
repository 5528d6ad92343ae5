"""The end of a closed team: its grants end, its volumes and its namespace are deleted."""
