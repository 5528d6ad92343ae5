"""What nobody waits for: the work of watcher and worker."""
