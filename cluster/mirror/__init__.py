"""The watcher: it follows the API server and writes the mirror tables. Reads of them are in `cluster.reads`."""
