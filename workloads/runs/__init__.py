"""The life of a run: its objects in the cluster, its end, and the run that follows it."""
