"""What the pending lines of a request would change in the cluster, tried by dry run."""
