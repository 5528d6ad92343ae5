"""The watcher: it watches the API server and writes the mirror tables. `cluster.reads` reads them."""
