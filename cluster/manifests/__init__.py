"""Builds Kubernetes objects as plain dicts from frozen specs, and names them. Pure: no database, no API server."""
