"""The watcher: follows the API server and writes the mirror tables. Reads of these tables are in `cluster.reads`."""
