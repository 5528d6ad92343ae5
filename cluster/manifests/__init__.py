"""Frozen specs to Kubernetes objects as plain dicts, and the names of these objects. Pure: no database, no API server."""
