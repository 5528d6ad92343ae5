"""The servers that benchmarks start: databases, Redis, gunicorn and uvicorn, the watcher, and the bare peers."""
