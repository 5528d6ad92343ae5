"""Servers of a benchmark's own: databases, Redis, gunicorn and uvicorn, the watcher, and the bare peers."""
