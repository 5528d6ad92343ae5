"""The end of a closed team: its grants end, its volumes are deleted, its namespace goes."""
